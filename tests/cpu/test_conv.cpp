// Direct convolutions against their sums in double: every instruction set, uneven padding, strides, both layouts.
#include "tests/cpu/harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

namespace tenon::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
struct Form {
  int64_t n, c, h, w, o, kh, kw;
  int64_t stride = 1, top = 0, left = 0, bottom = 0, right = 0;
  int64_t out_h() const { return (h + top + bottom - kh) / stride + 1; }
  int64_t out_w() const { return (w + left + right - kw) / stride + 1; }
};
const Form kForms[] = {{2, 1, 9, 8, 6, 5, 5},
                       {2, 1, 7, 16, 32, 3, 3, 1, 1, 1, 1, 1},
                       {3, 2, 6, 7, 16, 3, 3, 1, 1, 0, 0, 2},
                       {2, 6, 7, 7, 16, 5, 5},
                       {1, 3, 8, 9, 5, 3, 2, 2, 1, 1, 0, 0},
                       {9, 33, 5, 5, 40, 3, 3, 1, 1, 1, 1, 1},
                       {2, 16, 4, 31, 64, 1, 1},
                       {1, 4, 3, 3, 17, 3, 3, 1, 2, 2, 2, 2},
                       {2, 5, 6, 6, 1, 2, 3, 3},
                       {1, 1, 1, 1, 1, 1, 1},
                       {2, 1, 10, 10, 48, 3, 3, 2},
                       {17, 2, 4, 40, 7, 1, 5, 1, 0, 2, 0, 2}};
tn_type image(int64_t n, int64_t c, int64_t h, int64_t w, bool last) {
  return last ? Op::with_strides(TN_F32, {n, c, h, w}, {h * w * c, 1, w * c, c}) : Op::dense(TN_F32, {n, c, h, w});
}
size_t size_of(const tn_type& t) { return size_t(t.dim[0] * t.dim[1] * t.dim[2] * t.dim[3]); }
size_t at(const tn_type& t, int64_t a, int64_t b, int64_t c, int64_t d) { return size_t(a * t.stride[0] + b * t.stride[1] + c * t.stride[2] + d * t.stride[3]); }
std::vector<float> normal(size_t n, unsigned seed) {
  std::mt19937 r(seed);
  std::normal_distribution<float> d;
  std::vector<float> v(n);
  for (float& x : v) x = d(r);
  return v;
}
Op& window(Op& op, const Form& f) {
  return op.ints(TN_KEY_STRIDES, {f.stride, f.stride}).ints(TN_KEY_LO, {f.top, f.left}).ints(TN_KEY_HI, {f.bottom, f.right});
}
// f(n, o, i, j, c, k, l, row, column) for every product, padding left out.
void for_products(const Form& f, const std::function<void(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t)>& visit) {
  for (int64_t n = 0; n < f.n; ++n)
    for (int64_t o = 0; o < f.o; ++o)
      for (int64_t i = 0; i < f.out_h(); ++i)
        for (int64_t j = 0; j < f.out_w(); ++j)
          for (int64_t c = 0; c < f.c; ++c)
            for (int64_t k = 0; k < f.kh; ++k)
              for (int64_t l = 0; l < f.kw; ++l) {
                const int64_t r = i * f.stride - f.top + k, s = j * f.stride - f.left + l;
                if (r >= 0 && s >= 0 && r < f.h && s < f.w) visit(n, o, i, j, c, k, l, r, s);
              }
}
void expect_sums(const std::vector<float>& got, const std::vector<double>& want, const std::vector<double>& size, const std::string& what) {
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-6 * (size[i] + 1e-30)) << what << " element " << i;
}

class Conv : public testing::TestWithParam<const char*> {
 protected:
  Pack pack{GetParam(), 2};
};
INSTANTIATE_TEST_SUITE_P(InstructionSets, Conv, testing::Values("baseline", "avx2", "avx512"), [](auto& i) { return std::string(i.param); });

TEST_P(Conv, outputs_are_the_sums_of_products_plus_bias) {
  for (const Form& f : kForms)
    for (int variant = 0; variant < 4; ++variant) {
      const bool bias = variant & 1, last_in = variant & 2;
      const tn_type xt = image(f.n, f.c, f.h, f.w, last_in), yt = image(f.n, f.o, f.out_h(), f.out_w(), true), wt = Op::dense(TN_F32, {f.o, f.c, f.kh, f.kw});
      const auto x = normal(size_of(xt), 1), w = normal(size_of(wt), 2), b = normal(size_t(f.o), 3);
      std::vector<float> y(size_of(yt) + 1, 7);
      Op op(TN_OPID_CONV2D);
      op.in(xt).in(wt);
      bias ? op.in(TN_F32, {f.o}) : op.absent();
      window(op.out(yt), f);
      ASSERT_EQ(pack.run("cpu.conv2d", op, {const_cast<float*>(x.data()), const_cast<float*>(w.data()), bias ? const_cast<float*>(b.data()) : nullptr, y.data()}), TN_OK);
      ASSERT_EQ(y.back(), 7.0f);
      y.pop_back();
      std::vector<double> want(y.size()), size(y.size());
      for (int64_t n = 0; n < f.n; ++n)
        for (int64_t o = 0; bias && o < f.o; ++o)
          for (int64_t i = 0; i < f.out_h(); ++i)
            for (int64_t j = 0; j < f.out_w(); ++j) want[at(yt, n, o, i, j)] = b[size_t(o)], size[at(yt, n, o, i, j)] = std::fabs(b[size_t(o)]);
      for_products(f, [&](int64_t n, int64_t o, int64_t i, int64_t j, int64_t c, int64_t k, int64_t l, int64_t r, int64_t s) {
        const double v = double(x[at(xt, n, c, r, s)]) * double(w[at(wt, o, c, k, l)]);
        want[at(yt, n, o, i, j)] += v, size[at(yt, n, o, i, j)] += std::fabs(v);
      });
      expect_sums(y, want, size, "form " + std::to_string(&f - kForms));
    }
}
TEST_P(Conv, input_gradients_send_each_output_back_through_its_weights) {
  for (const Form& f : kForms) {
    for (bool last_in : {false, true}) {
      const tn_type xt = image(f.n, f.c, f.h, f.w, true), yt = image(f.n, f.o, f.out_h(), f.out_w(), last_in), wt = Op::dense(TN_F32, {f.o, f.c, f.kh, f.kw});
      const auto dy = normal(size_of(yt), 4), w = normal(size_of(wt), 5);
      std::vector<float> dx(size_of(xt));
      Op op(TN_OPID_CONV2D_INPUT_GRAD);
      window(op.in(yt).in(wt).out(xt).ints(TN_KEY_DIMS, {f.n, f.c, f.h, f.w}), f);
      ASSERT_EQ(pack.run("cpu.conv2d_input_grad", op, {const_cast<float*>(dy.data()), const_cast<float*>(w.data()), dx.data()}), TN_OK);
      std::vector<double> want(dx.size()), size(dx.size());
      for_products(f, [&](int64_t n, int64_t o, int64_t i, int64_t j, int64_t c, int64_t k, int64_t l, int64_t r, int64_t s) {
        const double v = double(dy[at(yt, n, o, i, j)]) * double(w[at(wt, o, c, k, l)]);
        want[at(xt, n, c, r, s)] += v, size[at(xt, n, c, r, s)] += std::fabs(v);
      });
      expect_sums(dx, want, size, "form " + std::to_string(&f - kForms));
    }
  }
}
TEST_P(Conv, weight_gradients_sum_over_images_and_places) {
  for (const Form& f : kForms)
    for (int variant = 0; variant < 4; ++variant) {
      const tn_type xt = image(f.n, f.c, f.h, f.w, variant & 1), yt = image(f.n, f.o, f.out_h(), f.out_w(), variant & 2), wt = Op::dense(TN_F32, {f.o, f.c, f.kh, f.kw});
      const auto x = normal(size_of(xt), 6), dy = normal(size_of(yt), 7);
      std::vector<float> dw(size_of(wt));
      Op op(TN_OPID_CONV2D_WEIGHT_GRAD);
      window(op.in(xt).in(yt).out(wt).ints(TN_KEY_DIMS, {f.o, f.c, f.kh, f.kw}), f);
      ASSERT_EQ(pack.run("cpu.conv2d_weight_grad", op, {const_cast<float*>(x.data()), const_cast<float*>(dy.data()), dw.data()}), TN_OK);
      std::vector<double> want(dw.size()), size(dw.size());
      for_products(f, [&](int64_t n, int64_t o, int64_t i, int64_t j, int64_t c, int64_t k, int64_t l, int64_t r, int64_t s) {
        const double v = double(dy[at(yt, n, o, i, j)]) * double(x[at(xt, n, c, r, s)]);
        want[at(wt, o, c, k, l)] += v, size[at(wt, o, c, k, l)] += std::fabs(v);
      });
      expect_sums(dw, want, size, "form " + std::to_string(&f - kForms) + " layouts " + std::to_string(variant));
    }
}
// A NaN reaches the windows that hold it and no other; an infinite weight meets the padding's zeros as NaN.
TEST_P(Conv, special_values_keep_to_their_windows) {
  const Form f{1, 2, 6, 20, 18, 3, 3, 1, 1, 1, 1, 1};
  const tn_type xt = image(1, 2, 6, 20, true), yt = image(1, 18, 6, 20, true), wt = Op::dense(TN_F32, {18, 2, 3, 3});
  std::vector<float> x(size_of(xt), 1), w(size_of(wt), 1), y(size_of(yt));
  x[at(xt, 0, 1, 3, 9)] = kNan;
  w[at(wt, 17, 0, 0, 1)] = INFINITY;
  Op op(TN_OPID_CONV2D);
  window(op.in(xt).in(wt).absent().out(yt), f);
  ASSERT_EQ(pack.run("cpu.conv2d", op, {x.data(), w.data(), nullptr, y.data()}), TN_OK);
  for (int64_t o = 0; o < 18; ++o)
    for (int64_t i = 0; i < 6; ++i)
      for (int64_t j = 0; j < 20; ++j) {
        const float v = y[at(yt, 0, o, i, j)];
        const bool near = std::abs(i - 3) <= 1 && std::abs(j - 9) <= 1;
        if (near || (o == 17 && i == 0)) ASSERT_TRUE(std::isnan(v)) << o << ' ' << i << ' ' << j;
        else if (o == 17) ASSERT_EQ(v, INFINITY) << i << ' ' << j;
        else ASSERT_TRUE(std::isfinite(v)) << o << ' ' << i << ' ' << j;
      }
}
TEST(ConvPlans, weight_gradients_do_not_depend_on_threads) {
  const Form f{64, 6, 14, 14, 16, 5, 5};
  const tn_type xt = image(f.n, f.c, f.h, f.w, true), yt = image(f.n, f.o, f.out_h(), f.out_w(), true), wt = Op::dense(TN_F32, {f.o, f.c, f.kh, f.kw});
  const auto x = normal(size_of(xt), 6), dy = normal(size_of(yt), 7);
  std::vector<float> dw[2];
  for (uint32_t t : {1u, 2u}) {
    dw[t - 1].resize(size_of(wt));
    Pack pack(nullptr, t);
    Op op(TN_OPID_CONV2D_WEIGHT_GRAD);
    window(op.in(xt).in(yt).out(wt).ints(TN_KEY_DIMS, {f.o, f.c, f.kh, f.kw}), f);
    ASSERT_EQ(pack.run("cpu.conv2d_weight_grad", op, {const_cast<float*>(x.data()), const_cast<float*>(dy.data()), dw[t - 1].data()}), TN_OK);
  }
  EXPECT_EQ(dw[0], dw[1]);
}
TEST(ConvPlans, what_cannot_be_done_directly_is_declined_with_a_reason) {
  Pack pack;
  const auto refusal = [&](int64_t groups, int64_t dilation, bool last, int64_t n) {
    Op op(TN_OPID_CONV2D);
    op.in(image(n, 4, 6, 6, last)).in(TN_F32, {4, 4 / groups, 2, 2}).absent().out(image(n, 4, 6 - dilation, 6 - dilation, last));
    op.i64(TN_KEY_GROUPS, groups).ints(TN_KEY_DILATIONS, {dilation, dilation});
    return pack.refusal("cpu.conv2d", op);
  };
  EXPECT_EQ(refusal(1, 1, true, 2), "");
  EXPECT_NE(refusal(2, 1, true, 2).find("groups"), std::string::npos);
  EXPECT_NE(refusal(1, 2, true, 2).find("dilation"), std::string::npos);
  EXPECT_NE(refusal(1, 1, false, 2).find("channels-last"), std::string::npos);
  EXPECT_NE(refusal(1, 1, true, 0).find("empty"), std::string::npos);
}

}  // namespace
}  // namespace tenon::test
