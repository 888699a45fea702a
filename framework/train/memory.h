// What a device's memory holds, and the error that says so; internal to framework/train.
#pragma once
#include <tenon/train/trainer.hpp>

namespace tenon::train {

struct MemoryUse { uint64_t held = 0, peak = 0, pooled = 0, limit = 0; };  // bytes
MemoryUse memory_use(Device device);

struct StepParts {
  nn::Module& model;
  BatchSource& data;
  optim::Optimizer& optimizer;
  const std::vector<Tensor>& parameters;
  const Loss& loss;
  Device device;
  Generator* generator;
};
// Throws TN-TRAIN-017 about a step of `samples`: what is held, what a sample takes, and the largest batch that fits, found by
// trying. The model is as it was. The batch that failed must be gone. core_why: what the core said.
[[noreturn]] void explain_out_of_memory(const StepParts& parts, int64_t samples, const std::string& core_why);

}  // namespace tenon::train
