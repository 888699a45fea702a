// tenon/data/tensors.hpp - a loader's batch as tensors.
//
//   auto [x, y] = tenon::data::to_tensors(batch, device("cpu:0"));   // f32[n,c,h,w], i64[n]
#pragma once
#include <tenon/core/tensor.hpp>
#include <tenon/data/loader.hpp>

namespace tenon::data {

struct TensorBatch { Tensor x, y; };
// Copies; the batch may be used again at once. Throws tenon::Error.
TensorBatch to_tensors(const Batch& batch, Device device = {}, Where where = here());

}  // namespace tenon::data
