// tenon/train/models.hpp - networks written as a list of layers, as configurations do.
//
//   nn::Sequential net = train::build_model(train::preset_layers("cnn", 10), {.channels = 1, .height = 28, .width = 28});
//
// Layers: "conv OUT KERNEL [stride S] [pad P]" (pad: half the kernel, rounded down), "batchnorm", "layernorm",
//   "relu" "tanh" "sigmoid" "silu" "gelu", "pool K [stride S]" (the largest value; stride: K), "avgpool K [stride S]",
//   "dropout RATE", "flatten", "linear OUT". Sizes of inputs are worked out; a linear layer flattens images by itself.
// Errors: TN-TRAIN-020 a layer that is not understood, 021 one that does not fit what comes before, 022 unknown preset.
#pragma once
#include <tenon/data/dataset.hpp>
#include <tenon/nn/layers.hpp>

#include <string>
#include <vector>

namespace tenon::train {

std::vector<std::string> preset_names();  // "cnn", "lenet", "mlp"
std::vector<std::string> preset_layers(const std::string& name, uint32_t classes, Where where = here());
// `generator` gives the initial values; NULL: default_generator().
nn::Sequential build_model(const std::vector<std::string>& layers, data::ImageShape input, Generator* generator = nullptr, Where where = here());

}  // namespace tenon::train
