// What the pooling and normalising kernels promise, against their definitions in double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/onednn/harness.h"

namespace onednn_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// ---- average pooling ---------------------------------------------------------------------------------------------------
struct Pool {
  Dims x;
  Dims kernel, strides{1, 1}, lo{0, 0}, hi{0, 0};
  bool include_pad = false;
  Dims y() const {
    const auto size = [&](size_t i) { return (x[2 + i] + lo[i] + hi[i] - kernel[i]) / strides[i] + 1; };
    return {x[0], x[1], size(0), size(1)};
  }
  Attrs attrs() const {
    Attrs a;
    a.set(TN_KEY_KERNEL, kernel).set(TN_KEY_STRIDES, strides).set(TN_KEY_LO, lo).set(TN_KEY_HI, hi);
    a.set(TN_KEY_INCLUDE_PAD, int64_t{include_pad});
    return a;
  }
  // Elements of x under the window of y index i; `count`: what the sum is divided by.
  std::vector<Dims> window(const Dims& i, double* count) const {
    std::vector<Dims> list;
    for (int64_t r = 0; r < kernel[0]; ++r) {
      for (int64_t c = 0; c < kernel[1]; ++c) {
        const int64_t h = i[2] * strides[0] + r - lo[0], w = i[3] * strides[1] + c - lo[1];
        if (h >= 0 && h < x[2] && w >= 0 && w < x[3]) list.push_back({i[0], i[1], h, w});
      }
    }
    *count = include_pad ? static_cast<double>(kernel[0] * kernel[1]) : static_cast<double>(list.size());
    return list;
  }
};

const Pool kPools[] = {
    {{2, 3, 8, 8}, {2, 2}, {2, 2}},
    {{1, 1, 5, 7}, {3, 2}, {2, 1}, {1, 0}, {1, 1}},
    {{2, 17, 9, 6}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, true},
    {{3, 32, 7, 7}, {7, 7}},
    {{2, 16, 6, 6}, {2, 3}, {1, 3}, {0, 2}, {1, 1}},
    {{4, 40, 40, 40}, {2, 2}, {2, 2}},
};

template <class Fn>
void for_each_pool(const Fn& fn) {
  for (const Pool& p : kPools) {
    for (uint32_t dtype : {TN_F32, TN_BF16}) {
      for (bool last : {false, true}) {
        const auto tensor = [&](const Dims& d) { return last ? Tensor::channels_last(dtype, d) : Tensor(dtype, d); };
        fn(p, dtype, tensor);
      }
    }
  }
}

double tolerance(uint32_t dtype) { return dtype == TN_BF16 ? 8e-3 : 2e-6; }

TEST(OnednnAvgPool2d, is_the_mean_of_the_window) {
  for_each_pool([](const Pool& p, uint32_t dtype, const auto& tensor) {
    Tensor x = tensor(p.x), y = tensor(p.y());
    x.fill(1);
    const Call call{"onednn.avg_pool2d", TN_OPID_AVG_POOL2D, {&x}, {&y}, p.attrs(), {}, 0};
    tn_diag diag{};
    ASSERT_EQ(Plugin::with_threads(2).run(call, &diag), TN_OK) << diag.msg;
    const auto want = [&](const Dims& i) {
      double count = 0, sum = 0;
      for (const Dims& e : p.window(i, &count)) sum += x.at(e);
      return sum / count;
    };
    expect_close(y, want, tolerance(dtype));
  });
}

TEST(OnednnAvgPool2d, grad_spreads_each_output_over_its_window) {
  for_each_pool([](const Pool& p, uint32_t dtype, const auto& tensor) {
    Tensor dx = tensor(p.x), dy = tensor(p.y());
    dy.fill(1);
    Call call{"onednn.avg_pool2d_grad", TN_OPID_AVG_POOL2D_GRAD, {&dy}, {&dx}, p.attrs(), {}, 0};
    call.attrs.set(TN_KEY_DIMS, p.x);
    tn_diag diag{};
    const bool overlap = p.strides[0] < p.kernel[0] || p.strides[1] < p.kernel[1];
    if (dtype == TN_BF16 && overlap) {  // shares of several windows would be summed in bf16: the kernel says so
      ASSERT_EQ(Plugin::with_threads(2).run(call, &diag), TN_E_UNSUPPORTED);
      return;
    }
    ASSERT_EQ(Plugin::with_threads(2).run(call, &diag), TN_OK) << diag.msg;
    Tensor sums(TN_F32, p.x);
    dy.each([&](const Dims& i) {
      double count = 0;
      for (const Dims& e : p.window(i, &count)) sums.set(e, sums.at(e) + dy.at(i) / count);
    });
    expect_close(dx, [&](const Dims& i) { return sums.at(i); }, 2 * tolerance(dtype));
  });
}

TEST(OnednnAvgPool2d, nan_and_inf_reach_their_windows_only) {
  const Pool p{{1, 17, 6, 6}, {2, 2}, {2, 2}};
  for (bool last : {false, true}) {
    Tensor x = last ? Tensor::channels_last(TN_F32, p.x) : Tensor(TN_F32, p.x);
    Tensor y = last ? Tensor::channels_last(TN_F32, p.y()) : Tensor(TN_F32, p.y());
    x.fill(1);
    x.set({0, 3, 1, 1}, kNaN), x.set({0, 16, 4, 4}, kInf);
    const Call call{"onednn.avg_pool2d", TN_OPID_AVG_POOL2D, {&x}, {&y}, p.attrs(), {}, 0};
    ASSERT_EQ(Plugin::with_threads(1).run(call), TN_OK);
    const auto want = [&](const Dims& i) {
      double count = 0, sum = 0;
      for (const Dims& e : p.window(i, &count)) sum += x.at(e);
      return sum / count;
    };
    expect_close(y, want, 2e-6);
  }
}

TEST(OnednnAvgPool2d, refuses_padding_as_wide_as_the_kernel_and_dilation) {
  const Pool p{{1, 1, 6, 6}, {2, 2}, {1, 1}, {2, 0}, {0, 0}};
  Tensor x(TN_F32, p.x), y(TN_F32, p.y());
  Call call{"onednn.avg_pool2d", TN_OPID_AVG_POOL2D, {&x}, {&y}, p.attrs(), {}, 0};
  EXPECT_EQ(Plugin::with_threads(1).supports(call), TN_E_UNSUPPORTED);
  const Pool q{{1, 1, 6, 6}, {2, 2}};
  Tensor z(TN_F32, q.y());
  call.attrs = q.attrs();
  call.out = {&z};
  EXPECT_EQ(Plugin::with_threads(1).supports(call), TN_OK);
  call.attrs.set(TN_KEY_DILATIONS, Dims{2, 2});
  EXPECT_EQ(Plugin::with_threads(1).supports(call), TN_E_UNSUPPORTED);
}

// ---- layer norm ----------------------------------------------------------------------------------------------------------
struct Moments {
  double mean = 0, variance = 0;
};

template <class Range>
Moments moments(const Tensor& x, const Range& indices) {
  Moments m;
  double n = 0;
  for (const Dims& i : indices) m.mean += x.at(i), ++n;
  m.mean /= n;
  for (const Dims& i : indices) m.variance += (x.at(i) - m.mean) * (x.at(i) - m.mean);
  m.variance /= n;
  return m;
}

void expect_layer_norm(Tensor x, Dims kept, int64_t axis, bool scaled, bool shifted, uint32_t threads) {
  const size_t rank = x.type.rank, first = static_cast<size_t>(axis < 0 ? axis + x.type.rank : axis);
  Dims tail(x.type.dim + first, x.type.dim + rank);
  Tensor scale(TN_F32, tail), shift(TN_F32, tail), none, y(TN_F32, Dims(x.type.dim, x.type.dim + rank));
  Tensor mean(TN_F32, kept), rstd(TN_F32, kept);
  scale.fill(5), shift.fill(6);
  Call call{"onednn.layer_norm", TN_OPID_LAYER_NORM, {&x, scaled ? &scale : &none, shifted ? &shift : &none},
            {&y, &mean, &rstd}, {}, {}, 0};
  call.attrs.set(TN_KEY_AXIS, axis).set(TN_KEY_EPSILON, 1e-3);
  tn_diag diag{};
  ASSERT_EQ(Plugin::with_threads(threads).run(call, &diag), TN_OK) << diag.msg;
  const auto row_of = [&](const Dims& i) {
    std::vector<Dims> row;
    Tensor walk(TN_F32, tail);
    walk.each([&](const Dims& t) {
      Dims full(i.begin(), i.begin() + static_cast<long>(first));
      full.insert(full.end(), t.begin(), t.end());
      row.push_back(full);
    });
    return row;
  };
  expect_close(mean, [&](const Dims& i) { return moments(x, row_of(i)).mean; }, 2e-6);
  expect_close(rstd, [&](const Dims& i) { return 1 / std::sqrt(moments(x, row_of(i)).variance + 1e-3); }, 4e-6);
  const auto want = [&](const Dims& i) {
    const Moments m = moments(x, row_of(i));
    const Dims t(i.begin() + static_cast<long>(first), i.end());
    return (x.at(i) - m.mean) / std::sqrt(m.variance + 1e-3) * (scaled ? scale.at(t) : 1) + (shifted ? shift.at(t) : 0);
  };
  expect_close(y, want, 1e-5);
}

TEST(OnednnLayerNorm, normalises_rows_of_every_length) {
  for (int64_t n = 1; n <= 70; n += 3) {
    expect_layer_norm(Tensor(TN_F32, {3, n}).fill(1), {3, 1}, -1, n % 2 == 0, n % 3 == 0, 1);
  }
}

TEST(OnednnLayerNorm, takes_several_axes_and_scale_and_bias) {
  for (bool scaled : {false, true}) {
    for (bool shifted : {false, true}) {
      expect_layer_norm(Tensor(TN_F32, {2, 3, 4, 5}).fill(2), {2, 3, 1, 1}, 2, scaled, shifted, 1);
      expect_layer_norm(Tensor(TN_F32, {40}).fill(2), {1}, 0, scaled, shifted, 1);
      expect_layer_norm(Tensor(TN_F32, {500, 70}).fill(2), {500, 1}, 1, scaled, shifted, 2);
    }
  }
}

TEST(OnednnLayerNorm, a_row_with_nan_or_inf_is_nan_and_its_neighbours_are_not) {
  Tensor x(TN_F32, {4, 21});
  x.fill(1);
  x.set({1, 20}, kNaN), x.set({2, 0}, kInf);
  Tensor none, y(TN_F32, {4, 21}), mean(TN_F32, {4, 1}), rstd(TN_F32, {4, 1});
  const Call call{"onednn.layer_norm", TN_OPID_LAYER_NORM, {&x, &none, &none}, {&y, &mean, &rstd}, {}, {}, 0};
  ASSERT_EQ(Plugin::with_threads(1).run(call), TN_OK);
  y.each([&](const Dims& i) { EXPECT_EQ(std::isnan(y.at(i)), i[0] == 1 || i[0] == 2) << i[0] << "," << i[1]; });
}

TEST(OnednnLayerNorm, keeps_the_variance_of_values_with_a_large_mean) {
  Tensor x(TN_F32, {2, 64});
  x.each([&](const Dims& i) { x.set(i, 1000 + static_cast<double>(i[1] % 4)); });
  expect_layer_norm(x, {2, 1}, -1, false, false, 1);
}

// ---- batch norm ------------------------------------------------------------------------------------------------------------
struct Batch {
  Dims x;
  bool last, affine;
  Tensor data(uint32_t seed) const {
    Tensor t = last && x.size() == 4 ? Tensor::channels_last(TN_F32, x) : Tensor(TN_F32, x);
    return t.fill(seed);
  }
  std::vector<Dims> channel(const Tensor& t, int64_t c) const {
    std::vector<Dims> list;
    t.each([&](const Dims& i) {
      if (i[1] == c) list.push_back(i);
    });
    return list;
  }
};

template <class Fn>
void for_each_batch(const Fn& fn) {
  for (const Dims& x : {Dims{4, 3, 5, 5}, Dims{2, 16, 3, 4}, Dims{8, 17}, Dims{1, 1, 2, 2}, Dims{3, 32, 1, 1}, Dims{5, 48, 4, 3}}) {
    for (bool last : {false, true}) {
      for (bool affine : {false, true}) fn(Batch{x, last, affine});
    }
  }
}

TEST(OnednnBatchNorm, normalises_with_batch_statistics) {
  for_each_batch([](const Batch& b) {
    Tensor x = b.data(1), y = b.data(2), none;
    Tensor scale(TN_F32, {b.x[1]}), shift(TN_F32, {b.x[1]}), mean(TN_F32, {b.x[1]}), variance(TN_F32, {b.x[1]});
    scale.fill(3), shift.fill(4);
    Call call{"onednn.batch_norm", TN_OPID_BATCH_NORM, {&x, b.affine ? &scale : &none, b.affine ? &shift : &none},
              {&y, &mean, &variance}, {}, {}, 0};
    call.attrs.set(TN_KEY_EPSILON, 1e-3);
    tn_diag diag{};
    ASSERT_EQ(Plugin::with_threads(2).run(call, &diag), TN_OK) << diag.msg;
    std::vector<Moments> m;
    for (int64_t c = 0; c < b.x[1]; ++c) m.push_back(moments(x, b.channel(x, c)));
    const auto of = [&](const Dims& i) { return m[static_cast<size_t>(i[1])]; };
    expect_close(mean, [&](const Dims& i) { return m[static_cast<size_t>(i[0])].mean; }, 2e-6);
    expect_close(variance, [&](const Dims& i) { return m[static_cast<size_t>(i[0])].variance; }, 2e-6);
    const auto want = [&](const Dims& i) {
      const double n = (x.at(i) - of(i).mean) / std::sqrt(of(i).variance + 1e-3);
      return b.affine ? n * scale.at({i[1]}) + shift.at({i[1]}) : n;
    };
    expect_close(y, want, 1e-5);
  });
}

TEST(OnednnBatchNorm, grad_is_the_derivative_of_the_training_formula) {
  for_each_batch([](const Batch& b) {
    if (!b.affine) return;
    const int64_t channels = b.x[1];
    Tensor x = b.data(1), dy = b.data(2), dx = b.data(3), scale(TN_F32, {channels}), mean(TN_F32, {channels});
    Tensor variance(TN_F32, {channels}), dscale(TN_F32, {channels}), dbias(TN_F32, {channels});
    scale.fill(3);
    for (int64_t c = 0; c < channels; ++c) {
      const Moments m = moments(x, b.channel(x, c));
      mean.set({c}, m.mean), variance.set({c}, m.variance);
    }
    Call call{"onednn.batch_norm_grad", TN_OPID_BATCH_NORM_GRAD, {&x, &scale, &mean, &variance, &dy},
              {&dx, &dscale, &dbias}, {}, {}, 0};
    call.attrs.set(TN_KEY_EPSILON, 1e-3);
    tn_diag diag{};
    ASSERT_EQ(Plugin::with_threads(2).run(call, &diag), TN_OK) << diag.msg;
    // dx = scale * r * (dy - mean(dy) - n * mean(dy * n)), n = (x - mean) * r
    std::vector<double> sum(static_cast<size_t>(channels)), dot(static_cast<size_t>(channels));
    const auto r = [&](int64_t c) { return 1 / std::sqrt(variance.at({c}) + 1e-3); };
    const auto n = [&](const Dims& i) { return (x.at(i) - mean.at({i[1]})) * r(i[1]); };
    double count = 1;
    for (size_t a = 0; a < b.x.size(); ++a) count *= a == 1 ? 1 : static_cast<double>(b.x[a]);
    x.each([&](const Dims& i) {
      sum[static_cast<size_t>(i[1])] += dy.at(i), dot[static_cast<size_t>(i[1])] += dy.at(i) * n(i);
    });
    expect_close(dscale, [&](const Dims& i) { return dot[static_cast<size_t>(i[0])]; }, 2e-5);
    expect_close(dbias, [&](const Dims& i) { return sum[static_cast<size_t>(i[0])]; }, 1e-5);
    const auto want = [&](const Dims& i) {
      const auto c = static_cast<size_t>(i[1]);
      return scale.at({i[1]}) * r(i[1]) * (dy.at(i) - sum[c] / count - n(i) * dot[c] / count);
    };
    expect_close(dx, want, 5e-5);
  });
}

TEST(OnednnBatchNorm, infer_uses_the_statistics_it_is_given) {
  for (bool last : {false, true}) {
    for (const Dims& dims : {Dims{5, 19, 4, 3}, Dims{6, 32, 40, 40}, Dims{9, 7}}) {
      const Batch b{dims, last, true};
      Tensor x = b.data(1), y = b.data(2), none, scale(TN_F32, {dims[1]}), mean(TN_F32, {dims[1]}), variance(TN_F32, {dims[1]});
      scale.fill(3), mean.fill(4);
      variance.each([&](const Dims& i) { variance.set(i, 0.5 + static_cast<double>(i[0] % 5)); });
      Call call{"onednn.batch_norm_infer", TN_OPID_BATCH_NORM_INFER, {&x, &scale, &none, &mean, &variance}, {&y}, {}, {}, 0};
      call.attrs.set(TN_KEY_EPSILON, 1e-3);
      tn_diag diag{};
      ASSERT_EQ(Plugin::with_threads(2).run(call, &diag), TN_OK) << diag.msg;
      const auto want = [&](const Dims& i) {
        return (x.at(i) - mean.at({i[1]})) / std::sqrt(variance.at({i[1]}) + 1e-3) * scale.at({i[1]});
      };
      expect_close(y, want, 1e-5);
    }
  }
}

TEST(OnednnBatchNorm, nan_stays_in_its_channel) {
  for (bool last : {false, true}) {
    const Batch b{{2, 20, 3, 3}, last, false};
    Tensor x = b.data(1), y = b.data(2), none, mean(TN_F32, {20}), variance(TN_F32, {20});
    x.set({1, 7, 2, 2}, kNaN), x.set({0, 9, 0, 0}, kInf);
    const Call call{"onednn.batch_norm", TN_OPID_BATCH_NORM, {&x, &none, &none}, {&y, &mean, &variance}, {}, {}, 0};
    ASSERT_EQ(Plugin::with_threads(1).run(call), TN_OK);
    y.each([&](const Dims& i) { EXPECT_EQ(std::isnan(y.at(i)), i[1] == 7 || i[1] == 9) << "channel " << i[1]; });
  }
}

TEST(OnednnPlugin, offers_no_kernel_that_breaks_a_corner_case) {
  for (const char* name : {"onednn.max_pool2d", "onednn.softmax", "onednn.log_softmax"}) {
    EXPECT_EQ(Plugin::with_threads(1).find(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace onednn_test
