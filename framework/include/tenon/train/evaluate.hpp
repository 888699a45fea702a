// tenon/train/evaluate.hpp - a model's loss and accuracy on a dataset, class by class.
//
//   Evaluation e = evaluate(net, *data->test, {.device = device("cpu:0")});   // e.accuracy.value()
#pragma once
#include <tenon/data/transforms.hpp>
#include <tenon/nn/module.hpp>
#include <tenon/train/trainer.hpp>

#include <memory>

namespace tenon::train {

struct EvaluateOptions {
  Device device;                 // none: default_device()
  uint32_t batch = 500;
  data::Normalise normalise;     // the one the model was trained with
  bool channels_last = false;
  DType dtype = DType::f32;
  int64_t ignore_index = -100;
  const std::atomic<int>* stop = nullptr;
};
// Runs in eval mode without recording; the model's mode is put back. Same model, data and batch: the same result. Blocks.
Evaluation evaluate(nn::Module& model, std::shared_ptr<const data::Dataset> dataset, const EvaluateOptions& options = {});

}  // namespace tenon::train
