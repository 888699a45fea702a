// Pooling and its gradients against plain loops over every window position, NCHW and channels-last.
#include "tests/cpu/harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tenon::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
struct Form { int64_t h, w, kernel, stride, pad, dilation; };
const Form kForms[] = {{6, 6, 2, 2, 0, 1}, {7, 5, 3, 2, 1, 1}, {9, 8, 2, 1, 0, 2}, {5, 5, 3, 3, 1, 2}, {4, 4, 4, 1, 0, 1}, {1, 1, 1, 1, 0, 1}};
int64_t pooled(int64_t n, const Form& f) { return (n + 2 * f.pad - f.dilation * (f.kernel - 1) - 1) / f.stride + 1; }
tn_type image(int64_t c, int64_t h, int64_t w, bool last) {
  return last ? Op::with_strides(TN_F32, {2, c, h, w}, {h * w * c, 1, w * c, c}) : Op::dense(TN_F32, {2, c, h, w});
}
int64_t at(const tn_type& t, int64_t n, int64_t c, int64_t h, int64_t w) { return n * t.stride[0] + c * t.stride[1] + h * t.stride[2] + w * t.stride[3]; }
void attributes(Op& op, const Form& f, bool include_pad) {
  op.ints(TN_KEY_KERNEL, {f.kernel, f.kernel}).ints(TN_KEY_STRIDES, {f.stride, f.stride}).ints(TN_KEY_LO, {f.pad, f.pad}).ints(TN_KEY_HI, {f.pad, f.pad})
      .ints(TN_KEY_DILATIONS, {f.dilation, f.dilation}).i64(TN_KEY_INCLUDE_PAD, include_pad);
}

TEST(Pool, maxima_averages_and_gradients_match_loops_in_both_layouts) {
  for (const char* isa : {"baseline", "avx2", "avx512"})
  for (const int64_t c : {3, 37})
  for (const Form& f : kForms)
    for (int variant = 0; variant < 4; ++variant) {
      Pack pack(isa, 2);
      const bool last = variant & 1, include_pad = variant & 2;
      const int64_t oh = pooled(f.h, f), ow = pooled(f.w, f);
      const tn_type x_type = image(c, f.h, f.w, last), y_type = image(c, oh, ow, last);
      std::vector<float> x(static_cast<size_t>(2 * c * f.h * f.w)), dy(static_cast<size_t>(2 * c * oh * ow));
      for (size_t i = 0; i < x.size(); ++i) x[i] = float((i * 37) % 11) - 5;  // with ties
      for (size_t i = 0; i < dy.size(); ++i) dy[i] = float(i % 7) + 1;
      if (f.h == 7) x[5] = kNan;
      std::vector<float> top(dy.size()), mean(dy.size()), dtop(x.size()), dmean(x.size()), want_dtop(x.size()), want_dmean(x.size());
      Op max(TN_OPID_MAX_POOL2D), avg(TN_OPID_AVG_POOL2D), max_grad(TN_OPID_MAX_POOL2D_GRAD), avg_grad(TN_OPID_AVG_POOL2D_GRAD);
      max.in(x_type).out(y_type), avg.in(x_type).out(y_type), max_grad.in(x_type).in(y_type).in(y_type).out(x_type), avg_grad.in(y_type).out(x_type);
      for (Op* op : {&max, &avg, &max_grad, &avg_grad}) attributes(*op, f, include_pad);
      ASSERT_EQ(pack.run("cpu.max_pool2d", max, {x.data(), top.data()}), TN_OK);
      ASSERT_EQ(pack.run("cpu.avg_pool2d", avg, {x.data(), mean.data()}), TN_OK);
      ASSERT_EQ(pack.run("cpu.max_pool2d_grad", max_grad, {x.data(), top.data(), dy.data(), dtop.data()}), TN_OK);
      ASSERT_EQ(pack.run("cpu.avg_pool2d_grad", avg_grad, {dy.data(), dmean.data()}), TN_OK);
      for (int64_t n = 0; n < 2; ++n)
        for (int64_t ch = 0; ch < c; ++ch)
          for (int64_t i = 0; i < oh; ++i)
            for (int64_t j = 0; j < ow; ++j) {
              float best = -INFINITY;
              int64_t best_at = -1;
              double sum = 0;
              std::vector<int64_t> inside;
              for (int64_t p = 0; p < f.kernel; ++p)
                for (int64_t q = 0; q < f.kernel; ++q) {
                  const int64_t r = i * f.stride - f.pad + p * f.dilation, s = j * f.stride - f.pad + q * f.dilation;
                  if (r < 0 || s < 0 || r >= f.h || s >= f.w) continue;
                  const int64_t k = at(x_type, n, ch, r, s);
                  const float v = x[size_t(k)];
                  inside.push_back(k), sum += v;
                  if (best_at < 0 || (!std::isnan(best) && (std::isnan(v) || v > best))) best = v, best_at = k;
                }
              const double count = include_pad ? double(f.kernel * f.kernel) : double(inside.size());
              const auto o = size_t(at(y_type, n, ch, i, j));
              if (std::isnan(best)) ASSERT_TRUE(std::isnan(top[o]));
              else ASSERT_EQ(top[o], best);
              if (std::isnan(sum)) ASSERT_TRUE(std::isnan(mean[o]));
              else ASSERT_NEAR(mean[o], sum / count, 1e-6 * (1 + std::fabs(sum)));
              want_dtop[size_t(best_at)] += dy[o];
              for (int64_t k : inside) want_dmean[size_t(k)] += float(dy[o] / count);
            }
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(dtop[i], want_dtop[i]) << i;
        ASSERT_NEAR(dmean[i], want_dmean[i], 1e-4) << i;
      }
    }
}

// +0 lies above -0 whichever comes first; a NaN wins from any place; a window of -Inf gives -Inf and its first tap the gradient.
TEST(Pool, special_values_in_channels_last_windows) {
  Pack pack;
  const int64_t c = 20;
  const std::vector<std::vector<float>> windows = {{0.0f, -0.0f, -0.0f, -1}, {-0.0f, -1, -0.0f, 0.0f}, {-0.0f, -0.0f, -2, -3}, {kNan, 1, INFINITY, 2},
                                                   {1, INFINITY, kNan, kNan}, {-INFINITY, -INFINITY, -INFINITY, -INFINITY}, {2, 2, 2, 2}, {1e-45f, 0, 0, 0}};
  const int64_t n = int64_t(windows.size());
  const float want[] = {0.0f, 0.0f, -0.0f, kNan, kNan, -INFINITY, 2, 1e-45f};
  const int first[] = {0, 0, 0, 0, 2, 0, 0, 0};  // of equals, the zeros of both signs among them
  const tn_type x_type = Op::with_strides(TN_F32, {n, c, 2, 2}, {4 * c, 1, 2 * c, c}), y_type = Op::with_strides(TN_F32, {n, c, 1, 1}, {c, 1, c, c});
  std::vector<float> x(size_t(n * 4 * c)), y(size_t(n * c)), dy(y.size()), dx(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = windows[i / size_t(4 * c)][i / size_t(c) % 4];
  for (size_t i = 0; i < dy.size(); ++i) dy[i] = float(i) + 1;
  Op max(TN_OPID_MAX_POOL2D), grad(TN_OPID_MAX_POOL2D_GRAD);
  max.in(x_type).out(y_type), grad.in(x_type).in(y_type).in(y_type).out(x_type);
  for (Op* op : {&max, &grad}) attributes(*op, {2, 2, 2, 2, 0, 1}, false);
  ASSERT_EQ(pack.run("cpu.max_pool2d", max, {x.data(), y.data()}), TN_OK);
  ASSERT_EQ(pack.run("cpu.max_pool2d_grad", grad, {x.data(), y.data(), dy.data(), dx.data()}), TN_OK);
  for (size_t i = 0; i < y.size(); ++i) {
    const float w = want[i / size_t(c)];
    if (std::isnan(w)) EXPECT_TRUE(std::isnan(y[i])) << i;
    else EXPECT_TRUE(y[i] == w && std::signbit(y[i]) == std::signbit(w)) << i << ": " << y[i];
  }
  for (size_t i = 0; i < dx.size(); ++i) {
    const size_t window = i / size_t(4 * c), tap = i / size_t(c) % 4, channel = i % size_t(c);
    EXPECT_EQ(dx[i], int(tap) == first[window] ? dy[window * size_t(c) + channel] : 0.0f) << window << ' ' << tap;
  }
}

}  // namespace
}  // namespace tenon::test
