// What a device's memory holds, and the error that says so; internal to framework/train.
#pragma once
#include <tenon/train/trainer.hpp>

namespace tenon::train {

struct MemoryUse { uint64_t held = 0, peak = 0, pooled = 0, limit = 0; };  // bytes
MemoryUse memory_use(Device device);

struct StepParts {
  nn::Module& model;
  optim::Optimizer& optimizer;
  const std::vector<Tensor>& parameters;
  const Loss& loss;
  Device device;
  Generator* generator;
};
// Throws TN-TRAIN-017: what is held, what the step wanted, and the largest batch that fits, found by trying. The model is
// as it was. `failed` is the batch that did not fit, empty tensors when it could not even be copied.
[[noreturn]] void explain_out_of_memory(const StepParts& parts, Batch failed, int64_t batch_size, const std::string& core_why);

}  // namespace tenon::train
