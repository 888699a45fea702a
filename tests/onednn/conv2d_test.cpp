// What onednn.conv2d and its gradients promise, against the defining sums in double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/onednn/harness.h"

namespace onednn_test {
namespace {

struct Geometry {
  int64_t n, c, h, w, o, kh, kw;
  Dims strides{1, 1}, lo{0, 0}, hi{0, 0}, dilations{1, 1};
  int64_t groups = 1;

  int64_t out_size(int64_t in, int64_t kernel, size_t axis) const {
    return (in + lo[axis] + hi[axis] - (kernel - 1) * dilations[axis] - 1) / strides[axis] + 1;
  }
  Dims x_dims() const { return {n, c, h, w}; }
  Dims w_dims() const { return {o, c / groups, kh, kw}; }
  Dims y_dims() const { return {n, o, out_size(h, kh, 0), out_size(w, kw, 1)}; }
  Attrs attrs() const {
    Attrs a;
    a.set(TN_KEY_LO, lo).set(TN_KEY_HI, hi).set(TN_KEY_STRIDES, strides).set(TN_KEY_DILATIONS, dilations);
    a.set(TN_KEY_GROUPS, groups);
    return a;
  }
  // Calls fn(x index, w index, y index) for every product of the convolution.
  template <class Fn>
  void products(const Fn& fn) const {
    const Dims y = y_dims();
    const int64_t cg = c / groups, og = o / groups;
    Dims yi(4), xi(4), wi(4);
    for (yi[0] = 0; yi[0] < n; ++yi[0])
      for (yi[1] = 0; yi[1] < o; ++yi[1])
        for (yi[2] = 0; yi[2] < y[2]; ++yi[2])
          for (yi[3] = 0; yi[3] < y[3]; ++yi[3])
            for (int64_t ci = 0; ci < cg; ++ci)
              for (int64_t i = 0; i < kh; ++i)
                for (int64_t j = 0; j < kw; ++j) {
                  xi = {yi[0], yi[1] / og * cg + ci, yi[2] * strides[0] + i * dilations[0] - lo[0],
                        yi[3] * strides[1] + j * dilations[1] - lo[1]};
                  if (xi[2] < 0 || xi[2] >= h || xi[3] < 0 || xi[3] >= w) continue;
                  wi = {yi[1], ci, i, j};
                  fn(xi, wi, yi);
                }
  }
};

// Sums in double, row-major.
struct Sums {
  Dims dims;
  std::vector<double> values;
  explicit Sums(Dims d) : dims(std::move(d)) {
    size_t n = 1;
    for (int64_t v : dims) n *= static_cast<size_t>(v);
    values.resize(n);
  }
  double& at(const Dims& i) {
    size_t o = 0;
    for (size_t a = 0; a < dims.size(); ++a) o = o * static_cast<size_t>(dims[a]) + static_cast<size_t>(i[a]);
    return values[o];
  }
};

enum class Order { RowMajor, ChannelsLast };

Tensor activation(uint32_t dtype, const Dims& dims, Order order) {
  return order == Order::RowMajor ? Tensor(dtype, dims) : Tensor::channels_last(dtype, dims);
}

double tolerance(uint32_t dtype, double sqrt_terms) { return (dtype == TN_BF16 ? 8e-3 : 3e-6) * sqrt_terms; }

// Thread counts, one run each; the sums, which cost more than all runs, are the same.
using Threads = std::initializer_list<uint32_t>;

void spoil(Tensor& t) {
  t.each([&](const Dims& i) { t.set(i, std::numeric_limits<double>::quiet_NaN()); });
}

void expect_forward(const Geometry& g, uint32_t dtype, Order order, bool with_bias, Threads pools) {
  Tensor x = activation(dtype, g.x_dims(), order), y = activation(dtype, g.y_dims(), order);
  Tensor w(dtype, g.w_dims()), bias(dtype, {g.o}), none;
  x.fill(1), w.fill(2), bias.fill(3);
  const Call call{"onednn.conv2d", TN_OPID_CONV2D, {&x, &w, with_bias ? &bias : &none}, {&y}, g.attrs(), {}, 0};
  tn_diag diag{};
  if (dtype == TN_BF16 && g.c / g.groups < 16) {  // there a NaN would leave its window: the kernel says so
    for (uint32_t threads : pools) ASSERT_EQ(Plugin::with_threads(threads).run(call, &diag), TN_E_UNSUPPORTED);
    return;
  }
  Sums sums(g.y_dims());
  g.products([&](const Dims& xi, const Dims& wi, const Dims& yi) { sums.at(yi) += x.at(xi) * w.at(wi); });
  for (uint32_t threads : pools) {
    spoil(y);
    ASSERT_EQ(Plugin::with_threads(threads).run(call, &diag), TN_OK) << diag.msg;
    expect_close(y, [&](const Dims& i) { return sums.at(i) + (with_bias ? bias.at({i[1]}) : 0); }, tolerance(dtype, 4));
  }
}

void expect_input_grad(const Geometry& g, uint32_t dtype, Order order, Threads pools) {
  Tensor dx = activation(dtype, g.x_dims(), order), dy = activation(dtype, g.y_dims(), order), w(dtype, g.w_dims());
  dy.fill(1), w.fill(2);
  Call call{"onednn.conv2d_input_grad", TN_OPID_CONV2D_INPUT_GRAD, {&dy, &w}, {&dx}, g.attrs(), {}, 0};
  call.attrs.set(TN_KEY_DIMS, g.x_dims());
  tn_diag diag{};
  Sums sums(g.x_dims());
  g.products([&](const Dims& xi, const Dims& wi, const Dims& yi) { sums.at(xi) += dy.at(yi) * w.at(wi); });
  for (uint32_t threads : pools) {
    spoil(dx);
    ASSERT_EQ(Plugin::with_threads(threads).run(call, &diag), TN_OK) << diag.msg;
    expect_close(dx, [&](const Dims& i) { return sums.at(i); }, tolerance(dtype, 4));
  }
}

void expect_weight_grad(const Geometry& g, uint32_t dtype, Order order, Threads pools) {
  Tensor x = activation(dtype, g.x_dims(), order), dy = activation(dtype, g.y_dims(), order), dw(dtype, g.w_dims());
  x.fill(1), dy.fill(2);
  Call call{"onednn.conv2d_weight_grad", TN_OPID_CONV2D_WEIGHT_GRAD, {&x, &dy}, {&dw}, g.attrs(), {}, 0};
  call.attrs.set(TN_KEY_DIMS, g.w_dims());
  tn_diag diag{};
  Sums sums(g.w_dims());
  g.products([&](const Dims& xi, const Dims& wi, const Dims& yi) { sums.at(wi) += dy.at(yi) * x.at(xi); });
  for (uint32_t threads : pools) {
    spoil(dw);
    ASSERT_EQ(Plugin::with_threads(threads).run(call, &diag), TN_OK) << diag.msg;
    expect_close(dw, [&](const Dims& i) { return sums.at(i); }, tolerance(dtype, 10));
  }
}

const Geometry kGeometries[] = {
    {1, 1, 5, 5, 1, 1, 1},
    {2, 1, 9, 9, 6, 5, 5, {1, 1}, {2, 2}, {2, 2}},
    {3, 6, 8, 8, 16, 5, 5},
    {2, 3, 11, 7, 5, 3, 2, {2, 1}, {1, 0}, {0, 1}},
    {2, 16, 7, 9, 17, 3, 3, {1, 1}, {1, 1}, {1, 1}},
    {2, 8, 9, 9, 12, 3, 3, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2},
    {2, 6, 9, 9, 6, 3, 3, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 6},
    {1, 6, 9, 9, 12, 3, 3, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 6},
    {2, 5, 13, 12, 4, 3, 3, {1, 1}, {2, 2}, {2, 2}, {2, 3}},
    {2, 32, 6, 6, 32, 1, 1},
    {1, 4, 6, 5, 8, 1, 1, {2, 3}},
    {2, 3, 4, 4, 7, 3, 3, {1, 1}, {4, 3}, {3, 5}},
    {1, 2, 10, 10, 3, 4, 4, {3, 2}, {1, 2}, {2, 0}, {2, 1}},
    {5, 16, 8, 8, 32, 3, 3, {1, 1}, {1, 1}, {1, 1}},
};

template <class Fn>
void for_each_case(const Fn& fn) {
  for (const Geometry& g : kGeometries) {
    for (uint32_t dtype : {TN_F32, TN_BF16}) {
      for (Order order : {Order::RowMajor, Order::ChannelsLast}) {
        SCOPED_TRACE(::testing::Message() << "x [" << g.n << "," << g.c << "," << g.h << "," << g.w << "] w [" << g.o << ","
                                          << g.kh << "," << g.kw << "] groups " << g.groups << " dtype " << dtype
                                          << (order == Order::RowMajor ? " row-major" : " channels-last"));
        fn(g, dtype, order);
      }
    }
  }
}

TEST(OnednnConv2d, forward_is_the_sum_of_products) {
  for_each_case([](const Geometry& g, uint32_t dtype, Order order) {
    expect_forward(g, dtype, order, false, {1});
    expect_forward(g, dtype, order, true, {1});
  });
}

TEST(OnednnConv2d, input_grad_is_the_sum_of_products) {
  for_each_case([](const Geometry& g, uint32_t dtype, Order order) { expect_input_grad(g, dtype, order, {1}); });
}

TEST(OnednnConv2d, weight_grad_is_the_sum_of_products) {
  for_each_case([](const Geometry& g, uint32_t dtype, Order order) { expect_weight_grad(g, dtype, order, {1}); });
}

TEST(OnednnConv2d, large_batches_are_cut_over_the_pool) {
  const Geometry wide{7, 16, 12, 12, 32, 3, 3, {1, 1}, {1, 1}, {1, 1}};
  const Geometry single{1, 32, 18, 18, 32, 3, 3, {1, 1}, {1, 1}, {1, 1}};
  for (const Geometry& g : {wide, single}) {
    for (Order order : {Order::RowMajor, Order::ChannelsLast}) {
      expect_forward(g, TN_F32, order, true, {2, 3});
      expect_input_grad(g, TN_F32, order, {2, 3});
      expect_weight_grad(g, TN_F32, order, {2, 3});
      expect_weight_grad(g, TN_BF16, order, {2, 3});
    }
  }
}

TEST(OnednnConv2d, takes_gapped_activations_and_permuted_weights) {
  const Geometry g{2, 4, 6, 6, 5, 3, 3};
  Tensor x(TN_F32, g.x_dims(), {400, 90, 14, 2}), y(TN_F32, g.y_dims()), none;
  Tensor w(TN_F32, g.w_dims(), {1, 5, 60, 20});
  x.fill(1), w.fill(2);
  const Call call{"onednn.conv2d", TN_OPID_CONV2D, {&x, &w, &none}, {&y}, g.attrs(), {}, 0};
  tn_diag diag{};
  ASSERT_EQ(Plugin::with_threads(1).run(call, &diag), TN_OK) << diag.msg;
  Sums sums(g.y_dims());
  g.products([&](const Dims& xi, const Dims& wi, const Dims& yi) { sums.at(yi) += x.at(xi) * w.at(wi); });
  expect_close(y, [&](const Dims& i) { return sums.at(i); }, 1e-5);
}

TEST(OnednnConv2d, nan_and_inf_reach_only_the_outputs_whose_window_holds_them) {
  const Geometry g{1, 20, 12, 12, 18, 3, 3, {1, 1}, {1, 1}, {1, 1}};
  for (uint32_t dtype : {TN_F32, TN_BF16}) {
    for (Order order : {Order::RowMajor, Order::ChannelsLast}) {
      Tensor x = activation(dtype, g.x_dims(), order), y = activation(dtype, g.y_dims(), order), w(dtype, g.w_dims()), none;
      x.fill(1), w.fill(2);
      x.set({0, 3, 2, 2}, std::numeric_limits<double>::quiet_NaN());
      x.set({0, 4, 8, 9}, std::numeric_limits<double>::infinity());
      const Call call{"onednn.conv2d", TN_OPID_CONV2D, {&x, &w, &none}, {&y}, g.attrs(), {}, 0};
      ASSERT_EQ(Plugin::with_threads(1).run(call), TN_OK);
      Sums sums(g.y_dims());
      g.products([&](const Dims& xi, const Dims& wi, const Dims& yi) { sums.at(yi) += x.at(xi) * w.at(wi); });
      expect_close(y, [&](const Dims& i) { return sums.at(i); }, tolerance(dtype, 8));
    }
  }
}

TEST(OnednnConv2d, refuses_empty_batches_and_sizes_that_do_not_fit) {
  Tensor x(TN_F32, {0, 3, 8, 8}), w(TN_F32, {4, 3, 3, 3}), y(TN_F32, {0, 4, 6, 6}), none;
  tn_diag diag{};
  Call call{"onednn.conv2d", TN_OPID_CONV2D, {&x, &w, &none}, {&y}, {}, {}, 0};
  EXPECT_EQ(Plugin::with_threads(1).supports(call, &diag), TN_E_UNSUPPORTED);
  Tensor x2(TN_F32, {1, 3, 8, 8}), y2(TN_F32, {1, 4, 7, 6});
  call.in[0] = &x2, call.out[0] = &y2;
  EXPECT_EQ(Plugin::with_threads(1).supports(call, &diag), TN_E_UNSUPPORTED);
  EXPECT_NE(std::string(diag.msg).find("7"), std::string::npos) << diag.msg;
}

}  // namespace
}  // namespace onednn_test
