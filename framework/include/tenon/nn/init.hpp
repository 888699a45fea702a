// tenon/nn/init.hpp - initial values, written in place and not recorded. Formulas are PyTorch's.
#pragma once
#include <tenon/core/tensor.hpp>

namespace tenon::nn::init {

// Inputs and outputs of one unit: weight [out, in, window...] has fan_in = in * window, fan_out = out * window.
struct Fans { int64_t in, out; };
Fans fans(const Tensor& weight, Where where = here());

void constant_(Tensor t, double value);
void uniform_(Tensor t, double low, double high, Generator* generator = nullptr);
void normal_(Tensor t, double mean = 0, double deviation = 1, Generator* generator = nullptr);
void kaiming_uniform_(Tensor t, double slope = 0, Generator* generator = nullptr);  // bound sqrt(6 / ((1 + slope^2) fan_in))
void kaiming_normal_(Tensor t, double slope = 0, Generator* generator = nullptr);   // deviation sqrt(2 / ((1 + slope^2) fan_in))
void xavier_uniform_(Tensor t, double gain = 1, Generator* generator = nullptr);    // bound gain sqrt(6 / (fan_in + fan_out))
void xavier_normal_(Tensor t, double gain = 1, Generator* generator = nullptr);     // deviation gain sqrt(2 / (fan_in + fan_out))

}  // namespace tenon::nn::init
