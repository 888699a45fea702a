// The usual layers.
#include <tenon/autograd/autograd.hpp>
#include <tenon/nn/init.hpp>
#include <tenon/nn/layers.hpp>

#include "framework/core/state.h"

#include <cmath>

namespace tenon::nn {
using detail::format;

namespace {

long long ll(int64_t v) { return static_cast<long long>(v); }

// The size that a layer was built for, against the one it receives.
void check_size(const Tensor& x, uint32_t rank, int64_t axis, int64_t built, const char* type, const char* what, const std::string& advice) {
  detail::require_defined(x, type, "x", Where{"", 0});
  const auto d = x.dims();
  const bool has_rank = rank == 0 ? !d.empty() : d.size() == rank;
  const int64_t a = axis < 0 ? axis + static_cast<int64_t>(d.size()) : axis;
  if (has_rank && d[static_cast<size_t>(a)] == built) return;
  detail::raise(TN_E_SHAPE, error::id(error::kTrain, 1), Where{"", 0}, type, "a layer receives another size than it was built for",
                has_rank ? format("%s was built with %s=%lld but receives %lld, x is %s", type, what, ll(built), ll(d[static_cast<size_t>(a)]), x.type_text().c_str())
                         : format("%s takes %u axes and %s=%lld, x is %s", type, rank, what, ll(built), x.type_text().c_str()),
                advice);
}

Tensor uniform(const Shape& dims, double bound, Generator* g) {
  Tensor t = empty(dims);
  init::uniform_(t, -bound, bound, g);
  return t;
}

}  // namespace

Linear::Linear(int64_t in, int64_t out, bool with_bias, Generator* generator)
    : Layer("Linear", format("in=%lld, out=%lld", ll(in), ll(out))), in_(in), out_(out) {
  const double bound = in > 0 ? 1 / std::sqrt(static_cast<double>(in)) : 0;
  weight = parameter("weight", uniform({out, in}, bound, generator));
  if (with_bias) bias = parameter("bias", uniform({out}, bound, generator));
}
Tensor Linear::forward(const Tensor& x) {
  check_size(x, 0, -1, in_, "Linear", "in",
             x.defined() && x.rank() ? format("build it as Linear(%lld, %lld)", ll(x.dims().back()), ll(out_)) : "give x at least one axis");
  return linear(x, weight, bias);
}

Conv2d::Conv2d(const Conv2dSpec& s, Generator* generator)
    : Layer("Conv2d", format("in=%lld, out=%lld, kernel=%lld, stride=%lld, padding=%lld, groups=%lld", ll(s.in), ll(s.out), ll(s.kernel),
                             ll(s.stride), ll(s.padding), ll(s.groups))), spec_(s) {
  if (s.groups < 1 || s.in % s.groups != 0 || s.out % s.groups != 0)
    detail::raise(TN_E_ARG, error::id(error::kTrain, 6), Where{"", 0}, "Conv2d", "channels do not divide into the groups",
                  format("in=%lld, out=%lld, groups=%lld", ll(s.in), ll(s.out), ll(s.groups)), "choose a number of groups that divides both");
  for (int k = 0; k < 2; ++k) {
    options_.stride[k] = s.stride;
    options_.pad_lo[k] = options_.pad_hi[k] = s.padding;
    options_.dilation[k] = s.dilation;
  }
  options_.groups = s.groups;
  const double fan_in = static_cast<double>(s.in / s.groups * s.kernel * s.kernel), bound = fan_in > 0 ? 1 / std::sqrt(fan_in) : 0;
  weight = parameter("weight", uniform({s.out, s.in / s.groups, s.kernel, s.kernel}, bound, generator));
  if (s.with_bias) bias = parameter("bias", uniform({s.out}, bound, generator));
}
Tensor Conv2d::forward(const Tensor& x) {
  check_size(x, 4, 1, spec_.in, "Conv2d", "in", "give x as [N, C, H, W] with C the channels that the layer was built for");
  return conv2d(x, weight, bias, options_);
}

BatchNorm2d::BatchNorm2d(int64_t channels, double epsilon, double momentum)
    : Layer("BatchNorm2d", format("channels=%lld", ll(channels))), channels_(channels), epsilon_(epsilon), momentum_(momentum) {
  weight = parameter("weight", ones({channels}));
  bias = parameter("bias", zeros({channels}));
  running_mean = buffer("running_mean", zeros({channels}));
  running_var = buffer("running_var", ones({channels}));
}
Tensor BatchNorm2d::forward(const Tensor& x) {
  check_size(x, 4, 1, channels_, "BatchNorm2d", "channels", "give x as [N, C, H, W] with C the channels that the layer was built for");
  if (!is_training()) return batch_norm_infer(x, weight, bias, running_mean, running_var, epsilon_);
  const BatchNormResult r = batch_norm(x, weight, bias, epsilon_);
  const double n = static_cast<double>(x.numel() / std::max<int64_t>(channels_, 1));
  NoGrad off;
  const double unbias = n > 1 ? n / (n - 1) : 1;
  running_mean.mul_(1 - momentum_).add_(r.mean.detach().to(running_mean.dtype()) * momentum_);
  running_var.mul_(1 - momentum_).add_(r.variance.detach().to(running_var.dtype()) * (momentum_ * unbias));
  return r.y;
}

LayerNorm::LayerNorm(const Shape& dims, double epsilon)
    : Layer("LayerNorm", "dims=" + tenon::to_string(dims)), dims_(dims), epsilon_(epsilon) {
  weight = parameter("weight", ones(dims));
  bias = parameter("bias", zeros(dims));
}
Tensor LayerNorm::forward(const Tensor& x) {
  for (uint32_t i = 0; i < dims_.size(); ++i)
    check_size(x, 0, static_cast<int64_t>(i) - static_cast<int64_t>(dims_.size()), dims_[i], "LayerNorm", "size", "build the layer with the last sizes of x");
  return layer_norm(x, weight, bias, -static_cast<int64_t>(dims_.size()), epsilon_);
}

Dropout::Dropout(double rate, Generator* generator) : Layer("Dropout", format("rate=%g", rate)), rate_(rate), generator_(generator) {}
Tensor Dropout::forward(const Tensor& x) { return is_training() && rate_ > 0 ? dropout(x, rate_, generator_) : x; }

namespace {
Pool2dOptions pool_options(int64_t kernel, int64_t stride, int64_t padding, bool include_pad) {
  Pool2dOptions o;
  for (int k = 0; k < 2; ++k) {
    o.kernel[k] = kernel;
    o.stride[k] = stride ? stride : kernel;
    o.pad_lo[k] = o.pad_hi[k] = padding;
  }
  o.include_pad = include_pad;
  return o;
}
}  // namespace
MaxPool2d::MaxPool2d(int64_t kernel, int64_t stride, int64_t padding)
    : Layer("MaxPool2d", format("kernel=%lld, stride=%lld, padding=%lld", ll(kernel), ll(stride ? stride : kernel), ll(padding))),
      options_(pool_options(kernel, stride, padding, false)) {}
Tensor MaxPool2d::forward(const Tensor& x) { return max_pool2d(x, options_); }
AvgPool2d::AvgPool2d(int64_t kernel, int64_t stride, int64_t padding, bool include_pad)
    : Layer("AvgPool2d", format("kernel=%lld, stride=%lld, padding=%lld", ll(kernel), ll(stride ? stride : kernel), ll(padding))),
      options_(pool_options(kernel, stride, padding, include_pad)) {}
Tensor AvgPool2d::forward(const Tensor& x) { return avg_pool2d(x, options_); }

Flatten::Flatten() : Layer("Flatten") {}
Tensor Flatten::forward(const Tensor& x) { return x.flatten(1); }
ReLU::ReLU() : Layer("ReLU") {}
Tensor ReLU::forward(const Tensor& x) { return relu(x); }
Tanh::Tanh() : Layer("Tanh") {}
Tensor Tanh::forward(const Tensor& x) { return tanh(x); }
Sigmoid::Sigmoid() : Layer("Sigmoid") {}
Tensor Sigmoid::forward(const Tensor& x) { return sigmoid(x); }
SiLU::SiLU() : Layer("SiLU") {}
Tensor SiLU::forward(const Tensor& x) { return silu(x); }
GELU::GELU(Gelu form) : Layer("GELU", form == Gelu::exact ? "exact" : "tanh"), form_(form) {}
Tensor GELU::forward(const Tensor& x) { return gelu(x, form_); }

Sequential::Sequential() : Layer("Sequential") {}
Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (const auto& c : children()) y = (*c.second)(y);
  return y;
}

}  // namespace tenon::nn
