// Batch norm against sums in long double, in both layouts and ranks 2 to 5, and with values that spoil statistics.
#include "tests/cpu/harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace tenon::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr double kEpsilon = 1e-3;

tn_type images(const std::vector<int64_t>& dims, bool last) {
  if (!last) return Op::dense(TN_F32, dims);
  std::vector<int64_t> strides(dims.size());
  int64_t step = dims[1];
  strides[1] = 1;
  for (size_t i = dims.size(); i-- > 0;)
    if (i != 1) strides[i] = step, step *= dims[i];
  return Op::with_strides(TN_F32, dims, strides);
}
struct Set {
  std::vector<int64_t> dims;
  bool last;
  int64_t n, c, plane;
  tn_type type;
  Set(std::vector<int64_t> d, bool channels_last) : dims(std::move(d)), last(channels_last), n(dims[0]), c(dims[1]), plane(1), type(images(dims, last)) {
    for (size_t i = 2; i < dims.size(); ++i) plane *= dims[i];
  }
  size_t size() const { return size_t(n * c * plane); }
  size_t at(int64_t i, int64_t ch, int64_t k) const { return size_t(last ? (i * plane + k) * c + ch : (i * c + ch) * plane + k); }
  template <class F> void each(int64_t ch, F f) const {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < plane; ++k) f(at(i, ch, k));
  }
};
std::vector<float> normal(size_t n, unsigned seed, float shift = 0, float spread = 1) {
  std::mt19937 r(seed);
  std::normal_distribution<float> d(shift, spread);
  std::vector<float> v(n);
  for (float& x : v) x = d(r);
  return v;
}
Op& epsilon(Op& op) { return op.f64(TN_KEY_EPSILON, kEpsilon); }
const std::vector<std::vector<int64_t>> kDims = {{5, 3}, {300, 70}, {4, 17, 5}, {2, 1, 3, 3}, {3, 32, 7, 9}, {9, 64, 6, 5}, {2, 6, 3, 2, 4}, {1, 1, 1, 1}, {2, 200, 1, 1}};

TEST(BatchNorm, statistics_and_values_match_long_double_sums) {
  for (const char* isa : {"baseline", "avx2", "avx512"})
    for (const auto& dims : kDims)
      for (int variant = 0; variant < 8; ++variant) {
        const Set s(dims, variant & 1);
        const bool affine = variant & 2;
        // A mean far from zero would show a variance that is taken as a difference of squares.
        const auto x = normal(s.size(), 7, variant & 4 ? 1000.0f : 0.5f, 0.25f), scale = normal(size_t(s.c), 8), bias = normal(size_t(s.c), 9);
        std::vector<float> y(s.size()), mean(size_t(s.c)), variance(size_t(s.c)), inferred(s.size());
        Pack pack(isa, 2);
        Op op(TN_OPID_BATCH_NORM), infer(TN_OPID_BATCH_NORM_INFER);
        op.in(s.type), infer.in(s.type);
        for (Op* o : {&op, &infer})
          for (int k = 0; k < 2; ++k) affine ? o->in(TN_F32, {s.c}) : o->absent();
        epsilon(op.out(s.type).out(TN_F32, {s.c}).out(TN_F32, {s.c})), epsilon(infer.in(TN_F32, {s.c}).in(TN_F32, {s.c}).out(s.type));
        const auto opt = [&](const std::vector<float>& v) { return affine ? const_cast<float*>(v.data()) : nullptr; };
        ASSERT_EQ(pack.run("cpu.batch_norm", op, {const_cast<float*>(x.data()), opt(scale), opt(bias), y.data(), mean.data(), variance.data()}), TN_OK);
        ASSERT_EQ(pack.run("cpu.batch_norm_infer", infer, {const_cast<float*>(x.data()), opt(scale), opt(bias), mean.data(), variance.data(), inferred.data()}), TN_OK);
        for (int64_t c = 0; c < s.c; ++c) {
          long double sum = 0, square = 0;
          s.each(c, [&](size_t i) { sum += x[i]; });
          const long double m = sum / (long double)(s.n * s.plane);
          s.each(c, [&](size_t i) { square += (x[i] - m) * (x[i] - m); });
          const long double var = square / (long double)(s.n * s.plane), rstd = 1 / sqrtl(var + kEpsilon);
          ASSERT_LE(ulp_error(mean[size_t(c)], m), 3) << isa;
          ASSERT_NEAR(variance[size_t(c)], double(var), 1e-5 * double(var) + 1e-12) << isa << ' ' << dims.size() << ' ' << variant;
          s.each(c, [&](size_t i) {
            const long double want = (x[i] - m) * rstd * (affine ? scale[size_t(c)] : 1) + (affine ? bias[size_t(c)] : 0);
            // A mean that is good to one unit of f32 shows where it is large.
            const double bound = variant & 4 ? 4e-3 : 2e-5;
            ASSERT_NEAR(y[i], double(want), bound * (1 + std::fabs(double(want)))) << isa << ' ' << variant;
            ASSERT_NEAR(inferred[i], double(want), (variant & 4 ? 4e-3 : 1e-5) * (1 + std::fabs(double(want))));
          });
        }
      }
}

TEST(BatchNorm, gradients_match_their_formula_in_long_double) {
  for (const char* isa : {"baseline", "avx2", "avx512"})
    for (const auto& dims : kDims)
      for (int variant = 0; variant < 4; ++variant) {
        const Set s(dims, variant & 1);
        const bool scaled = variant & 2;
        const auto x = normal(s.size(), 1), dy = normal(s.size(), 2, 0.3f), scale = normal(size_t(s.c), 3), mean = normal(size_t(s.c), 4, 0, 0.1f);
        std::vector<float> variance(size_t(s.c), 0.8f), dx(s.size()), dscale(size_t(s.c)), dbias(size_t(s.c));
        Pack pack(isa, 2);
        Op op(TN_OPID_BATCH_NORM_GRAD);
        op.in(s.type);
        scaled ? op.in(TN_F32, {s.c}) : op.absent();
        epsilon(op.in(TN_F32, {s.c}).in(TN_F32, {s.c}).in(s.type).out(s.type).out(TN_F32, {s.c}).out(TN_F32, {s.c}));
        const auto raw = [](const std::vector<float>& v) { return const_cast<float*>(v.data()); };
        ASSERT_EQ(pack.run("cpu.batch_norm_grad", op, {raw(x), scaled ? raw(scale) : nullptr, raw(mean), raw(variance), raw(dy), dx.data(), dscale.data(), dbias.data()}), TN_OK);
        for (int64_t c = 0; c < s.c; ++c) {
          const long double r = 1 / sqrtl((long double)variance[size_t(c)] + kEpsilon), m = mean[size_t(c)], n = (long double)(s.n * s.plane);
          long double sum = 0, dot = 0, size = 0;
          s.each(c, [&](size_t i) { sum += dy[i], dot += dy[i] * (x[i] - m) * r, size += std::fabs(dy[i] * (x[i] - m) * r) + std::fabs(dy[i]); });
          ASSERT_NEAR(dbias[size_t(c)], double(sum), 1e-6 * double(size));
          ASSERT_NEAR(dscale[size_t(c)], double(dot), 1e-6 * double(size));
          s.each(c, [&](size_t i) {
            const long double want = (scaled ? scale[size_t(c)] : 1) * r * (dy[i] - sum / n - (x[i] - m) * r * dot / n);
            ASSERT_NEAR(dx[i], double(want), 1e-5 * (1 + std::fabs(double(want)))) << isa << ' ' << c;
          });
        }
      }
}

// A channel with a NaN or infinity is spoilt, its neighbours are not.
TEST(BatchNorm, special_values_stay_in_their_channel) {
  for (bool last : {false, true})
    for (float bad : {kNan, INFINITY, -INFINITY}) {
      const Set s({40, 19, 3, 3}, last);
      auto x = normal(s.size(), 5);
      x[s.at(7, 4, 2)] = bad;
      std::vector<float> y(s.size()), mean(size_t(s.c)), variance(size_t(s.c));
      Pack pack(nullptr, 2);
      Op op(TN_OPID_BATCH_NORM);
      epsilon(op.in(s.type).absent().absent().out(s.type).out(TN_F32, {s.c}).out(TN_F32, {s.c}));
      ASSERT_EQ(pack.run("cpu.batch_norm", op, {x.data(), nullptr, nullptr, y.data(), mean.data(), variance.data()}), TN_OK);
      for (int64_t c = 0; c < s.c; ++c) {
        EXPECT_EQ(std::isnan(variance[size_t(c)]), c == 4);
        if (c == 4) {
          EXPECT_TRUE(std::isnan(bad) ? std::isnan(mean[4]) : mean[4] == bad) << last << mean[4];
        }
        s.each(c, [&](size_t i) { ASSERT_EQ(std::isnan(y[i]), c == 4) << last << ' ' << bad; });
      }
    }
}

TEST(BatchNorm, empty_batches_have_statistics_that_are_nan) {
  for (bool last : {false, true}) {
    const Set s({0, 3, 2, 2}, last);
    std::vector<float> mean(3), variance(3), dscale(3, 9), dbias(3, 9), stat(3, 1);
    float none[1];
    Pack pack;
    Op op(TN_OPID_BATCH_NORM), grad(TN_OPID_BATCH_NORM_GRAD);
    epsilon(op.in(s.type).absent().absent().out(s.type).out(TN_F32, {3}).out(TN_F32, {3}));
    epsilon(grad.in(s.type).absent().in(TN_F32, {3}).in(TN_F32, {3}).in(s.type).out(s.type).out(TN_F32, {3}).out(TN_F32, {3}));
    ASSERT_EQ(pack.run("cpu.batch_norm", op, {none, nullptr, nullptr, none, mean.data(), variance.data()}), TN_OK);
    ASSERT_EQ(pack.run("cpu.batch_norm_grad", grad, {none, nullptr, stat.data(), stat.data(), none, none, dscale.data(), dbias.data()}), TN_OK);
    for (int c = 0; c < 3; ++c) EXPECT_TRUE(std::isnan(mean[size_t(c)]) && std::isnan(variance[size_t(c)]) && dscale[size_t(c)] == 0 && dbias[size_t(c)] == 0);
  }
}

TEST(BatchNorm, results_do_not_depend_on_threads) {
  const Set s({64, 32, 14, 14}, true);
  const auto x = normal(s.size(), 11);
  std::vector<float> y[2], mean[2], variance[2];
  for (uint32_t t : {1u, 2u}) {
    y[t - 1].resize(s.size()), mean[t - 1].resize(size_t(s.c)), variance[t - 1].resize(size_t(s.c));
    Pack pack(nullptr, t);
    Op op(TN_OPID_BATCH_NORM);
    epsilon(op.in(s.type).absent().absent().out(s.type).out(TN_F32, {s.c}).out(TN_F32, {s.c}));
    ASSERT_EQ(pack.run("cpu.batch_norm", op, {const_cast<float*>(x.data()), nullptr, nullptr, y[t - 1].data(), mean[t - 1].data(), variance[t - 1].data()}), TN_OK);
  }
  EXPECT_EQ(y[0], y[1]);
  EXPECT_EQ(variance[0], variance[1]);
}

TEST(BatchNorm, layouts_that_differ_are_declined) {
  Pack pack;
  Op op(TN_OPID_BATCH_NORM);
  epsilon(op.in(images({2, 3, 4, 4}, true)).absent().absent().out(images({2, 3, 4, 4}, false)).out(TN_F32, {3}).out(TN_F32, {3}));
  EXPECT_NE(pack.refusal("cpu.batch_norm", op).find("layout"), std::string::npos);
}

}  // namespace
}  // namespace tenon::test
