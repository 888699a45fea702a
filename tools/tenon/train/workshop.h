// tools/tenon/train/workshop.h - everything a run is made of, built from its settings.
//
//   Workshop shop(settings);        // opens runtime, device and data, builds model, optimizer, schedule and trainer
//   shop.trainer->fit();   shop.test();   save_model("model.safetensors", shop.model, shop.card);
#pragma once
#include <memory>
#include <optional>
#include <tenon/core/runtime.hpp>
#include <tenon/data/loader.hpp>
#include <tenon/optim/optim.hpp>
#include <tenon/train/train.hpp>

#include "tools/config/config.h"
#include "tools/tenon/train/model_file.h"

namespace tenon::cli {

// A runtime for the settings, as the framework's default one. kernels "reference": only what is linked in.
Runtime open_runtime(const std::string& policy, int64_t threads, const std::string& kernels);
uint32_t policy_number(const std::string& name);  // TN_POLICY_*

struct LoadedData {
  std::shared_ptr<const data::Dataset> train, test;
  data::Normalise normalise;   // of all training images
  std::vector<std::string> class_names;
  std::string known_as;        // of the training images; "" unknown
};
LoadedData load_data(const config::TrainConfig::Data& data, int64_t limit_train, int64_t limit_test);

class Workshop {
 public:
  // settings.device becomes the name of the device that was found.
  explicit Workshop(config::TrainConfig settings, const std::atomic<int>* stop = nullptr);
  train::Evaluation test(const std::atomic<int>* stop = nullptr);

  config::TrainConfig settings;
  std::optional<Runtime> runtime;
  Device device;
  LoadedData data;
  ModelCard card;
  nn::Sequential model;
  bool channels_last = false;
  DType dtype = DType::f32;
  std::unique_ptr<data::DataLoader> loader;
  std::unique_ptr<train::LoaderSource> source;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::Scheduler> schedule;
  std::unique_ptr<train::Trainer> trainer;

 private:
  void build_model();
  void build_optimizer();
  std::unique_ptr<optim::Schedule> make_schedule(int64_t total_steps) const;
};

}  // namespace tenon::cli
