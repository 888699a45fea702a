// tools/tenon/train/model_file.h - a model file that says itself how the network is built and how pixels are scaled.
#pragma once
#include <string>
#include <tenon/data/transforms.hpp>
#include <tenon/nn/layers.hpp>
#include <vector>

namespace tenon::cli {

// Stored as metadata of the safetensors file: "tenon.layers", "tenon.input", "tenon.classes", "tenon.mean", "tenon.stddev".
struct ModelCard {
  std::vector<std::string> layers;
  data::ImageShape input;
  uint32_t classes = 0;
  data::Normalise normalise;
  std::vector<std::string> class_names;  // empty: numbers
  std::string config;                    // the settings it was trained with, TOML
};

void save_model(const std::string& path, const nn::Module& model, const ModelCard& card);
struct LoadedModel {
  nn::Sequential model;
  ModelCard card;
};
// Builds the network and loads its values onto `device`. A file without the metadata is TN-CLI-020.
LoadedModel load_model(const std::string& path, Device device);

// Names for the classes of known data: "Fashion-MNIST train labels" -> "T-shirt/top", ...; none for others.
std::vector<std::string> class_names(const std::string& labels_known_as);

}  // namespace tenon::cli
