// tenon/nn/loss.hpp - losses: one number each, in the type of the prediction.
#pragma once
#include <tenon/core/ops.hpp>

namespace tenon::nn {

// logits [n, c] or [n, c, d...], target i32 or i64 [n] or [n, d...]. The mean over rows whose target is not ignore_index;
// 0 when there is none, with a gradient of 0.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, int64_t ignore_index = -100, Where where = here());
Tensor mse_loss(const Tensor& prediction, const Tensor& target, Where where = here());  // equal shapes
Tensor l1_loss(const Tensor& prediction, const Tensor& target, Where where = here());

}  // namespace tenon::nn
