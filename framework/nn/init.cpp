// Initial values.
#include <tenon/autograd/autograd.hpp>
#include <tenon/core/ops.hpp>
#include <tenon/nn/init.hpp>

#include "framework/core/state.h"

#include <cmath>

namespace tenon::nn::init {

Fans fans(const Tensor& weight, Where where) {
  if (weight.rank() < 2)
    detail::raise(TN_E_SHAPE, error::id(error::kTrain, 5), where, "fans", "a weight of fewer than two axes has no fans",
                  "the tensor is " + weight.type_text(), "initialise it with uniform_ or normal_");
  int64_t window = 1;
  for (uint32_t i = 2; i < weight.rank(); ++i) window *= weight.dims()[i];
  return {weight.dims()[1] * window, weight.dims()[0] * window};
}

void constant_(Tensor t, double value) {
  NoGrad off;
  t.fill_(value);
}
void uniform_(Tensor t, double low, double high, Generator* generator) {
  NoGrad off;
  t.copy_(rand(t.shape(), {.dtype = t.dtype(), .device = t.device(), .generator = generator}) * (high - low) + low);
}
void normal_(Tensor t, double mean, double deviation, Generator* generator) {
  NoGrad off;
  t.copy_(randn(t.shape(), {.dtype = t.dtype(), .device = t.device(), .generator = generator}) * deviation + mean);
}
void kaiming_uniform_(Tensor t, double slope, Generator* generator) {
  const double bound = std::sqrt(6 / ((1 + slope * slope) * static_cast<double>(fans(t).in)));
  uniform_(t, -bound, bound, generator);
}
void kaiming_normal_(Tensor t, double slope, Generator* generator) {
  normal_(t, 0, std::sqrt(2 / ((1 + slope * slope) * static_cast<double>(fans(t).in))), generator);
}
void xavier_uniform_(Tensor t, double gain, Generator* generator) {
  const Fans f = fans(t);
  const double bound = gain * std::sqrt(6 / static_cast<double>(f.in + f.out));
  uniform_(t, -bound, bound, generator);
}
void xavier_normal_(Tensor t, double gain, Generator* generator) {
  const Fans f = fans(t);
  normal_(t, 0, gain * std::sqrt(2 / static_cast<double>(f.in + f.out)), generator);
}

}  // namespace tenon::nn::init
