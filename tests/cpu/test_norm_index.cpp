// Softmax, layer norm, cross entropy, their gradients, gather and scatter, against long double loops.
#include "tests/cpu/harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace tenon::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
class Norm : public testing::TestWithParam<const char*> {
 protected:
  Pack pack{GetParam(), 2};
};
INSTANTIATE_TEST_SUITE_P(InstructionSets, Norm, testing::Values("baseline", "avx2", "avx512"), [](auto& i) { return std::string(i.param); });

std::vector<float> noise(int64_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = std::normal_distribution<float>(0, 2)(rng);
  return x;
}
std::vector<float> softmax(Pack& pack, bool log, std::vector<float> x, int64_t rows) {
  const int64_t n = int64_t(x.size()) / rows;
  Op op(log ? TN_OPID_LOG_SOFTMAX : TN_OPID_SOFTMAX);
  op.in(TN_F32, {rows, n}).out(TN_F32, {rows, n}).i64(TN_KEY_AXIS, -1);
  std::vector<float> y(x.size() + 1, 5);
  EXPECT_EQ(pack.run(log ? "cpu.log_softmax" : "cpu.softmax", op, {x.data(), y.data()}), TN_OK);
  EXPECT_EQ(y.back(), 5.0f);
  y.pop_back();
  return y;
}
TEST_P(Norm, softmax_and_its_logarithm_are_right_at_every_length) {
  for (int64_t n = 1; n <= 70; ++n)
    for (float shift : {0.0f, 1000.0f, -500.0f}) {
      std::vector<float> x = noise(3 * n, unsigned(n));
      for (float& v : x) v += shift;
      const auto y = softmax(pack, false, x, 3), z = softmax(pack, true, x, 3);
      for (int64_t r = 0; r < 3; ++r) {
        long double top = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; ++i) top = std::max<long double>(top, x[size_t(r * n + i)]);
        for (int64_t i = 0; i < n; ++i) sum += std::exp(x[size_t(r * n + i)] - top);
        for (int64_t i = 0; i < n; ++i) {
          const long double d = x[size_t(r * n + i)] - top;
          // x - max is rounded once, which counts for up to |d| / 2 units in the result.
          ASSERT_LE(ulp_error(y[size_t(r * n + i)], std::exp(d) / sum), 3.5 + double(std::fabs(d))) << n;
          ASSERT_NEAR(z[size_t(r * n + i)], d - std::log(sum), 4e-7 * (1 + std::fabs(double(d)))) << n << " shift " << shift;
        }
      }
    }
}
TEST_P(Norm, rows_of_minus_infinity_or_with_a_nan_become_nan) {
  for (int64_t n : {1, 3, 16, 65}) {
    for (float v : softmax(pack, false, std::vector<float>(size_t(n), -kInf), 1)) ASSERT_TRUE(std::isnan(v));
    std::vector<float> x(size_t(n), 1.0f);
    x[size_t(n) / 2] = kNan;
    for (bool log : {false, true})
      for (float v : softmax(pack, log, x, 1)) ASSERT_TRUE(std::isnan(v));
  }
  const auto y = softmax(pack, false, {-kInf, 0, 0}, 1);
  EXPECT_EQ(y[0], 0.0f);
  EXPECT_EQ(y[1], 0.5f);
  const auto big = softmax(pack, false, {1000, 1000}, 1);
  EXPECT_EQ(big[0], 0.5f);
}
TEST_P(Norm, long_rows_go_through_memory) {
  const auto x = noise(2 * 20000, 8);
  const auto y = softmax(pack, false, x, 2);
  double sum = 0;
  for (size_t i = 0; i < 20000; ++i) sum += y[i];
  EXPECT_NEAR(sum, 1, 1e-5);
}
TEST_P(Norm, layer_norm_gives_value_mean_and_reciprocal_deviation) {
  for (int64_t n : {1, 2, 10, 16, 63, 257}) {
    const int64_t rows = 5;
    auto x = noise(rows * n, 3), scale = noise(n, 4), bias = noise(n, 5);
    for (float& v : x) v += 30;
    for (int form = 0; form < 4; ++form) {
      Op op(TN_OPID_LAYER_NORM);
      std::vector<float> y(x.size()), mean(rows), rstd(rows);
      std::vector<void*> views = {x.data()};
      op.in(TN_F32, {rows, n});
      if (form & 1) op.in(TN_F32, {n}), views.push_back(scale.data()); else op.absent(), views.push_back(nullptr);
      if (form & 2) op.in(TN_F32, {n}), views.push_back(bias.data()); else op.absent(), views.push_back(nullptr);
      op.out(TN_F32, {rows, n}).out(TN_F32, {rows, 1}).out(TN_F32, {rows, 1}).i64(TN_KEY_AXIS, -1).f64(TN_KEY_EPSILON, 1e-5);
      for (void* p : {static_cast<void*>(y.data()), static_cast<void*>(mean.data()), static_cast<void*>(rstd.data())}) views.push_back(p);
      ASSERT_EQ(pack.run("cpu.layer_norm", op, views), TN_OK);
      for (int64_t r = 0; r < rows; ++r) {
        double m = 0, v = 0;
        for (int64_t i = 0; i < n; ++i) m += x[size_t(r * n + i)];
        m /= double(n);
        for (int64_t i = 0; i < n; ++i) v += (x[size_t(r * n + i)] - m) * (x[size_t(r * n + i)] - m);
        const double rs = 1 / std::sqrt(v / double(n) + 1e-5);
        ASSERT_NEAR(mean[size_t(r)], m, 1e-5);
        ASSERT_NEAR(rstd[size_t(r)], rs, 1e-4 * rs);
        for (int64_t i = 0; i < n; ++i) {
          const double want = (x[size_t(r * n + i)] - m) * rs * (form & 1 ? scale[size_t(i)] : 1) + (form & 2 ? bias[size_t(i)] : 0);
          ASSERT_NEAR(y[size_t(r * n + i)], want, 2e-5 * (1 + std::fabs(want)) * (n == 1 ? 1000 : 1)) << n;
        }
      }
    }
  }
}
TEST_P(Norm, layer_norm_gradient_matches_finite_differences_of_the_formula) {
  const int64_t rows = 130, n = 19;
  auto x = noise(rows * n, 3), scale = noise(n, 4), dy = noise(rows * n, 6);
  std::vector<float> mean(rows), rstd(rows), dx(x.size()), dscale(n), dbias(n);
  const auto norm = [&](const double* row, double* xhat, double* m, double* rs) {
    *m = 0;
    double v = 0;
    for (int64_t i = 0; i < n; ++i) *m += row[i] / double(n);
    for (int64_t i = 0; i < n; ++i) v += (row[i] - *m) * (row[i] - *m) / double(n);
    *rs = 1 / std::sqrt(v + 1e-5);
    for (int64_t i = 0; i < n; ++i) xhat[i] = (row[i] - *m) * *rs;
  };
  std::vector<double> row(n), xhat(n), want_scale(n, 0), want_bias(n, 0);
  for (int64_t r = 0; r < rows; ++r) {
    double m, rs;
    for (int64_t i = 0; i < n; ++i) row[size_t(i)] = x[size_t(r * n + i)];
    norm(row.data(), xhat.data(), &m, &rs);
    mean[size_t(r)] = float(m), rstd[size_t(r)] = float(rs);
    for (int64_t i = 0; i < n; ++i) want_scale[size_t(i)] += dy[size_t(r * n + i)] * xhat[size_t(i)], want_bias[size_t(i)] += dy[size_t(r * n + i)];
  }
  Op op(TN_OPID_LAYER_NORM_GRAD);
  op.in(TN_F32, {rows, n}).in(TN_F32, {n}).in(TN_F32, {rows, 1}).in(TN_F32, {rows, 1}).in(TN_F32, {rows, n}).out(TN_F32, {rows, n}).out(TN_F32, {n}).out(TN_F32, {n}).i64(TN_KEY_AXIS, -1);
  ASSERT_EQ(pack.run("cpu.layer_norm_grad", op, {x.data(), scale.data(), mean.data(), rstd.data(), dy.data(), dx.data(), dscale.data(), dbias.data()}), TN_OK);
  for (size_t i = 0; i < size_t(n); ++i) {
    ASSERT_NEAR(dscale[i], want_scale[i], 1e-3);
    ASSERT_NEAR(dbias[i], want_bias[i], 1e-3);
  }
  const auto loss = [&](int64_t r, int64_t at, double h) {
    double m, rs, sum = 0;
    for (int64_t i = 0; i < n; ++i) row[size_t(i)] = x[size_t(r * n + i)] + (i == at ? h : 0);
    norm(row.data(), xhat.data(), &m, &rs);
    for (int64_t i = 0; i < n; ++i) sum += xhat[size_t(i)] * scale[size_t(i)] * dy[size_t(r * n + i)];
    return sum;
  };
  for (int64_t r : {0, 77, 129})
    for (int64_t i = 0; i < n; ++i) ASSERT_NEAR(dx[size_t(r * n + i)], (loss(r, i, 1e-5) - loss(r, i, -1e-5)) / 2e-5, 1e-3) << r << "," << i;
}
TEST_P(Norm, cross_entropy_and_gradient_skip_ignored_rows_and_refuse_targets_outside) {
  const int64_t n = 4, c = 10;
  auto x = noise(n * c, 2);
  std::vector<int64_t> target = {3, -100, 0, 9};
  std::vector<float> loss(n, 8), dloss = {1, 1, 0.5f, 2}, dx(x.size(), 8);
  Op op(TN_OPID_CROSS_ENTROPY);
  op.in(TN_F32, {n, c}).in(TN_I64, {n}).out(TN_F32, {n}).i64(TN_KEY_IGNORE_INDEX, -100);
  ASSERT_EQ(pack.run("cpu.cross_entropy", op, {x.data(), target.data(), loss.data()}), TN_OK);
  Op grad(TN_OPID_CROSS_ENTROPY_GRAD);
  grad.in(TN_F32, {n, c}).in(TN_I64, {n}).in(TN_F32, {n}).out(TN_F32, {n, c}).i64(TN_KEY_IGNORE_INDEX, -100);
  ASSERT_EQ(pack.run("cpu.cross_entropy_grad", grad, {x.data(), target.data(), dloss.data(), dx.data()}), TN_OK);
  for (int64_t r = 0; r < n; ++r) {
    double sum = 0;
    for (int64_t i = 0; i < c; ++i) sum += std::exp(double(x[size_t(r * c + i)]));
    const bool ignored = target[size_t(r)] == -100;
    ASSERT_NEAR(loss[size_t(r)], ignored ? 0 : std::log(sum) - x[size_t(r * c + target[size_t(r)])], 2e-6 * 10);
    for (int64_t i = 0; i < c; ++i)
      ASSERT_NEAR(dx[size_t(r * c + i)], ignored ? 0 : (std::exp(double(x[size_t(r * c + i)])) / sum - (i == target[size_t(r)])) * dloss[size_t(r)], 1e-6);
  }
  target[2] = 10;
  tn_diag d{};
  EXPECT_EQ(pack.run("cpu.cross_entropy", op, {x.data(), target.data(), loss.data()}, nullptr, &d), TN_E_FAILED);
  EXPECT_NE(std::string(d.msg).find("row 2"), std::string::npos);
  target[2] = -1;
  EXPECT_EQ(pack.run("cpu.cross_entropy", op, {x.data(), target.data(), loss.data()}), TN_E_FAILED);
}
TEST(Index, gather_moves_rows_and_single_elements_and_counts_negative_indices_from_the_end) {
  Pack pack(nullptr, 2);
  std::vector<float> data(7 * 5 * 6);
  for (size_t i = 0; i < data.size(); ++i) data[i] = float(i);
  for (int axis = 0; axis < 3; ++axis) {
    for (bool shared : {true, false}) {
      std::vector<int64_t> dims = {7, 5, 6}, index_dims = {7, 5, 6}, out_dims = {7, 5, 6};
      if (shared) index_dims = {1, 1, 1};
      index_dims[size_t(axis)] = out_dims[size_t(axis)] = 4;
      int64_t count = 1;
      for (int64_t d : index_dims) count *= d;
      std::vector<int32_t> index(static_cast<size_t>(count));
      for (size_t i = 0; i < index.size(); ++i) index[i] = int32_t((i * 7 + 3) % size_t(2 * dims[size_t(axis)])) - int32_t(dims[size_t(axis)]);
      Op op(TN_OPID_GATHER);
      op.in(TN_F32, dims).in(TN_I32, index_dims).out(TN_F32, out_dims).i64(TN_KEY_AXIS, axis);
      std::vector<float> out(7 * 5 * 6, -1);
      ASSERT_EQ(pack.run("cpu.gather", op, {data.data(), index.data(), out.data()}), TN_OK);
      for (int64_t i = 0; i < out_dims[0]; ++i)
        for (int64_t j = 0; j < out_dims[1]; ++j)
          for (int64_t k = 0; k < out_dims[2]; ++k) {
            int64_t at[3] = {i, j, k}, flat = 0;
            for (int x = 0; x < 3; ++x) flat = flat * index_dims[size_t(x)] + (index_dims[size_t(x)] == 1 ? 0 : at[x]);
            int64_t v = index[size_t(flat)];
            at[axis] = v < 0 ? v + dims[size_t(axis)] : v;
            ASSERT_EQ(out[size_t((i * out_dims[1] + j) * out_dims[2] + k)], data[size_t((at[0] * 5 + at[1]) * 6 + at[2])]);
          }
    }
  }
}
TEST(Index, indices_outside_fail_and_write_nothing) {
  Pack pack;
  std::vector<float> data(6, 1), out(2, -1);
  std::vector<int64_t> index = {0, 6};
  Op op(TN_OPID_GATHER);
  op.in(TN_F32, {6}).in(TN_I64, {2}).out(TN_F32, {2}).i64(TN_KEY_AXIS, 0);
  tn_diag d{};
  EXPECT_EQ(pack.run("cpu.gather", op, {data.data(), index.data(), out.data()}, nullptr, &d), TN_E_FAILED);
  EXPECT_EQ(out[0], -1.0f);
  EXPECT_NE(std::string(d.msg).find("6"), std::string::npos);
}
TEST(Index, scatter_applies_updates_in_order_for_every_mode) {
  Pack pack(nullptr, 3);
  const int64_t v = 5, w = 200, n = 9;
  std::vector<float> data(v * w), updates(n * w);
  for (size_t i = 0; i < data.size(); ++i) data[i] = float(i % 11);
  for (size_t i = 0; i < updates.size(); ++i) updates[i] = float(i % 17) - 8;
  std::vector<int64_t> index = {0, 3, 3, -1, 0, 2, 3, 4, 0};
  for (uint32_t mode : {TN_SCATTER_SET, TN_SCATTER_ADD, TN_SCATTER_MUL, TN_SCATTER_MIN, TN_SCATTER_MAX}) {
    Op op(TN_OPID_SCATTER);
    op.in(TN_F32, {v, w}).in(TN_I64, {n, 1}).in(TN_F32, {n, w}).out(TN_F32, {v, w}).i64(TN_KEY_AXIS, 0).i64(TN_KEY_MODE, mode);
    std::vector<float> out(data.size()), want = data;
    ASSERT_EQ(pack.run("cpu.scatter", op, {data.data(), index.data(), updates.data(), out.data()}), TN_OK);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < w; ++j) {
        float& o = want[size_t((index[size_t(i)] < 0 ? index[size_t(i)] + v : index[size_t(i)]) * w + j)];
        const float u = updates[size_t(i * w + j)];
        o = mode == TN_SCATTER_SET ? u : mode == TN_SCATTER_ADD ? o + u : mode == TN_SCATTER_MUL ? o * u : mode == TN_SCATTER_MIN ? std::min(o, u) : std::max(o, u);
      }
    ASSERT_EQ(out, want) << "mode " << mode;
  }
}

}  // namespace
}  // namespace tenon::test
