// Derivatives through the public API against central differences in f64.
#pragma once
#include <gtest/gtest.h>
#include <tenon/tenon.hpp>

#include <cmath>
#include <functional>

namespace tenon::test {

using Fn = std::function<Tensor(const std::vector<Tensor>&)>;

inline Tensor values(const Shape& dims, double first = 0.3, double step = 0.37) {
  std::vector<double> v(static_cast<size_t>(dims.numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = std::sin(first + step * static_cast<double>(i)) + 0.1;  // no ties, no zeros
  return from_vector(v, dims);
}

// sum(f) has the same derivative as f weighted by ones; a weight per element keeps errors from cancelling.
inline Tensor weighted(const Tensor& y) { return sum(y * values(y.shape(), 1.1, 0.9)); }

inline void check_gradients(const Fn& f, std::vector<Tensor> in, double tolerance = 1e-6) {
  for (Tensor& t : in) t = t.detach().clone().set_requires_grad(true);
  const std::vector<Tensor> analytic = grad(weighted(f(in)), in);
  const double h = 1e-5;
  for (size_t k = 0; k < in.size(); ++k) {
    const auto base = in[k].to_vector<double>();
    const auto got = analytic[k].to_vector<double>();
    ASSERT_EQ(got.size(), base.size());
    for (size_t i = 0; i < base.size(); ++i) {
      auto at = [&](double delta) {
        NoGrad off;
        auto moved = base;
        moved[i] += delta;
        std::vector<Tensor> x = in;
        x[k] = from_vector(moved, in[k].shape());
        return weighted(f(x)).item<double>();
      };
      const double numeric = (at(h) - at(-h)) / (2 * h);
      EXPECT_NEAR(got[i], numeric, tolerance * std::max(1.0, std::abs(numeric))) << "input " << k << " element " << i;
    }
  }
}

// The gradient of a weighted gradient, checked the same way.
inline void check_second(const Fn& f, const std::vector<Tensor>& in, double tolerance = 1e-5) {
  check_gradients([&](const std::vector<Tensor>& x) {
    EnableGrad on;
    std::vector<Tensor> leaves = x;
    for (Tensor& t : leaves) if (!t.requires_grad()) t = t.detach().set_requires_grad(true);
    const auto g = grad(weighted(f(leaves)), leaves, {.create_graph = true, .allow_unused = true});
    Tensor total = tensor(0.0);
    for (const Tensor& t : g) if (t.defined()) total = total + weighted(t);
    for (const Tensor& t : leaves) total = total + sum(t) * 0.0;  // a constant gradient has a derivative too: zero
    return total;
  }, in, tolerance);
}

}  // namespace tenon::test
