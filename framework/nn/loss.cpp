// Losses.
#include <tenon/autograd/autograd.hpp>
#include <tenon/nn/loss.hpp>

#include "framework/core/state.h"

namespace tenon::nn {
namespace {

void check_same_shape(const Tensor& a, const Tensor& b, const char* op, Where where) {
  detail::require_defined(a, op, "prediction", where);
  detail::require_defined(b, op, "target", where);
  if (a.shape() == b.shape()) return;
  // Broadcasting [n,1] against [n] to [n,n] is the classic silent mistake of losses.
  detail::raise(TN_E_SHAPE, error::id(error::kTrain, 7), where, op, "prediction and target differ in shape",
                "prediction " + a.type_text() + ", target " + b.type_text(), "reshape one of them to the other's shape");
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& target, int64_t ignore_index, Where where) {
  detail::require_defined(logits, "cross_entropy", "logits", where);
  detail::require_defined(target, "cross_entropy", "target", where);
  Tensor rows = logits, labels = target;
  if (logits.rank() > 2) {  // classes to the end, then one row per label
    Shape perm{0};
    for (uint32_t i = 2; i < logits.rank(); ++i) perm.push_back(i);
    perm.push_back(1);
    const Tensor last = logits.permute(std::span<const int64_t>(perm), where);
    rows = last.reshape({-1, logits.dims()[1]}, where);
    labels = target.reshape({-1}, where);
  }
  const Tensor losses = cross_entropy_rows(rows, labels, ignore_index, where);
  Tensor valid;
  {
    NoGrad off;
    valid = sum(cast(not_equal(labels, Operand(ignore_index, where)), losses.dtype(), where), {}, false, where);
    valid = maximum(valid, Operand(1.0, where));
  }
  return div(sum(losses, {}, false, where), valid, where);
}

Tensor mse_loss(const Tensor& prediction, const Tensor& target, Where where) {
  check_same_shape(prediction, target, "mse_loss", where);
  return mean(square(sub(prediction, target, where), where), {}, false, where);
}
Tensor l1_loss(const Tensor& prediction, const Tensor& target, Where where) {
  check_same_shape(prediction, target, "l1_loss", where);
  return mean(abs(sub(prediction, target, where), where), {}, false, where);
}

}  // namespace tenon::nn
