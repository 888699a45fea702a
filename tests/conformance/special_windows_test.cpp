// Pooling, convolution and products with odd values: by brute force in long double, every place of the value in turn.
#include <gtest/gtest.h>
#include <tenon/ops.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/cases.h"
#include "tests/conformance/everywhere.h"

namespace tenon::conformance {
namespace {

using Numbers = std::vector<Number>;
constexpr Number kInf = std::numeric_limits<Number>::infinity();
constexpr Number kNan = std::numeric_limits<Number>::quiet_NaN();

Number plain_value(size_t i) { return (i % 3 == 1 ? -1 : 1) * (0.5L + static_cast<Number>(i * 5 % 16) / 32); }

Numbers plain(size_t n) {
  Numbers v(n);
  for (size_t i = 0; i < n; ++i) v[i] = plain_value(i);
  return v;
}

// Images, one for each special value and place, of one channel; the rest holds plain numbers.
Array images(uint32_t dtype, int64_t h, int64_t w) {
  const auto size = static_cast<size_t>(h * w);
  Numbers all = plain(size);
  int64_t n = 1;
  for (Number v : special_values(dtype))
    for (const size_t at : {size_t{0}, size / 2, size - 1}) {
      Numbers one = plain(size);
      one[at] = v;
      all.insert(all.end(), one.begin(), one.end());
      ++n;
    }
  for (Number v : {kNan, kInf, -kInf, Number{-0.0L}, Number{0}}) all.insert(all.end(), size, v), ++n;
  return {dtype, {n, 1, h, w}, all};
}

struct Window {
  int64_t kernel, stride, pad;
  bool count_pad;
};

Numbers pooled(const Array& x, const Window& p, bool average, int64_t* oh, int64_t* ow, Numbers* scale) {
  const int64_t h = x.dims[2], w = x.dims[3];
  *oh = (h + 2 * p.pad - p.kernel) / p.stride + 1;
  *ow = (w + 2 * p.pad - p.kernel) / p.stride + 1;
  Numbers y;
  for (int64_t n = 0; n < x.dims[0]; ++n)
    for (int64_t i = 0; i < *oh; ++i)
      for (int64_t j = 0; j < *ow; ++j) {
        Number sum = 0, size = 0, top = -kInf;
        int64_t taps = 0;
        for (int64_t a = 0; a < p.kernel; ++a)
          for (int64_t b = 0; b < p.kernel; ++b) {
            const int64_t r = i * p.stride + a - p.pad, c = j * p.stride + b - p.pad;
            if (r < 0 || r >= h || c < 0 || c >= w) continue;
            const Number v = x.v[static_cast<size_t>((n * h + r) * w + c)];
            ++taps;
            sum += v;
            size += std::isfinite(v) ? std::fabs(v) : 0;
            if (std::isnan(top) || std::isnan(v)) top = kNan;
            else if (v > top || (v == 0 && top == 0 && !std::signbit(v))) top = v;
          }
        const auto divisor = static_cast<Number>(p.count_pad ? p.kernel * p.kernel : taps);
        y.push_back(average ? (taps != 0 ? sum / divisor : 0) : top);
        scale->push_back(average && taps != 0 ? size / divisor : 0);
      }
  return y;
}

void try_pooling(const char* op, bool average) {
  int failures = 0;
  for (uint32_t dtype : {TN_F32, TN_F16, TN_BF16, TN_F64})
    for (const Window& p : {Window{2, 2, 0, false}, Window{3, 1, 1, false}, Window{3, 2, 1, true}, Window{2, 1, 0, true}})
      for (int64_t w : {2, 3, 5, 8, 17, 33}) {
        if (w + 2 * p.pad < p.kernel || (!average && p.count_pad) || (!full_run() && dtype != TN_F32 && w != 5)) continue;
        const Array x = images(dtype, 4, w);
        int64_t oh = 0, ow = 0;
        Bound bound{16, {}};
        Numbers y = pooled(x, p, average, &oh, &ow, &bound.scale);
        if (!average) bound.scale.clear();
        Call call{op, {ops::case_ints(TN_KEY_KERNEL, {p.kernel, p.kernel}), ops::case_ints(TN_KEY_STRIDES, {p.stride, p.stride}),
                       ops::case_ints(TN_KEY_LO, {p.pad, p.pad}), ops::case_ints(TN_KEY_HI, {p.pad, p.pad})}, {x}};
        if (average) call.attrs.push_back(ops::case_i64(TN_KEY_INCLUDE_PAD, p.count_pad));
        const std::string text = differences(call, {{array(dtype, {x.dims[0], 1, oh, ow}, y)}, {bound}}, full_run());
        if (!text.empty() && failures++ < 2) ADD_FAILURE() << text;
      }
}

TEST(SpecialWindows, of_max_pool2d) { try_pooling("max_pool2d", false); }
TEST(SpecialWindows, of_avg_pool2d) { try_pooling("avg_pool2d", true); }

// Sums of products, with the sum of their sizes.
struct Sum {
  Number value = 0, size = 0;
  void add(Number a, Number b) {
    value += a * b;
    if (std::isfinite(a) && std::isfinite(b)) size += std::fabs(a * b);
  }
};

// a [m, k] x b [k, n]: odd values in one row of a at three places, and in one column of b.
TEST(SpecialProducts, of_matmul_and_linear) {
  int failures = 0;
  for (uint32_t dtype : {TN_F32, TN_F64, TN_F16, TN_BF16})
    for (int64_t k : {0, 1, 2, 3, 7, 8, 16, 17, 33, 64, 70}) {
      if (!full_run() && dtype != TN_F32 && k % 8 != 1) continue;
      // Matrix units read subnormal bf16 as 0: against an infinity that is NaN, so those stay out.
      auto specials = special_values(dtype);
      if (dtype == TN_BF16) std::erase_if(specials, [](Number v) { return v != 0 && std::fabs(v) < 0x1p-126L; });
      const auto m = static_cast<int64_t>(3 * specials.size()), n = int64_t{5};
      Array a{dtype, {m, k}, plain(static_cast<size_t>(m * k))}, b{dtype, {k, n}, plain(static_cast<size_t>(k * n))};
      for (int64_t i = 0; i < m && k > 0; ++i) {
        const int64_t places[] = {0, k / 2, k - 1};
        a.v[static_cast<size_t>(i * k + places[i % 3])] = specials[static_cast<size_t>(i / 3)];
      }
      if (k > 0) {
        b.v[static_cast<size_t>((k / 2) * n + 3)] = kInf;
        b.v[static_cast<size_t>((k - 1) * n + 4)] = 0;
      }
      Array y{dtype, {m, n}, {}};
      Bound bound{static_cast<Number>(k + 16), {}};
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          Sum s;
          for (int64_t t = 0; t < k; ++t) s.add(a.v[static_cast<size_t>(i * k + t)], b.v[static_cast<size_t>(t * n + j)]);
          y.v.push_back(s.value), bound.scale.push_back(s.size);
        }
      std::string text = differences({"matmul", {}, {a, b}}, {{y}, {bound}}, false);
      Array w{dtype, {n, k}, Numbers(b.v.size())};
      for (int64_t t = 0; t < k; ++t)
        for (int64_t j = 0; j < n; ++j) w.v[static_cast<size_t>(j * k + t)] = b.v[static_cast<size_t>(t * n + j)];
      text += differences({"linear", {}, {a, w, {}}}, {{y}, {bound}}, false);
      if (!text.empty() && failures++ < 2) ADD_FAILURE() << text;
    }
}

// Odd values in x and in w. Where a window reaches over the edge the op leaves open what Inf or NaN in w make of it.
TEST(SpecialProducts, of_conv2d) {
  int failures = 0;
  for (uint32_t dtype : {TN_F32, TN_BF16, TN_F64})
    for (int64_t pad : {0, 1})
      for (const Number in_w : {Number{0.25L}, kInf, kNan, -kInf}) {
        if (!full_run() && dtype != TN_F32 && std::isnan(in_w)) continue;
        Array x = images(dtype, 5, 6);
        if (dtype == TN_BF16)  // read as 0, see above
          for (Number& v : x.v) v = std::fabs(v) < 0x1p-126L ? 0.0L : v;
        Array w{dtype, {2, 1, 3, 3}, plain(18)};
        w.v[0] = in_w;
        const int64_t oh = 3 + 2 * pad, ow = 4 + 2 * pad;
        Array y{dtype, {x.dims[0], 2, oh, ow}, {}};
        Bound bound{32, {}};
        std::vector<bool> open;
        for (int64_t n = 0; n < x.dims[0]; ++n)
          for (int64_t o = 0; o < 2; ++o)
            for (int64_t i = 0; i < oh * ow; ++i) {
              Sum s;
              for (int64_t t = 0; t < 9; ++t) {
                const int64_t r = i / ow + t / 3 - pad, c = i % ow + t % 3 - pad;
                const bool inside = r >= 0 && r < 5 && c >= 0 && c < 6;
                s.add(inside ? x.v[static_cast<size_t>((n * 5 + r) * 6 + c)] : 0, w.v[static_cast<size_t>(o * 9 + t)]);
              }
              const bool over_edge = pad > 0 && (i < ow || i % ow == 0) && o == 0;
              open.push_back(over_edge && !std::isfinite(in_w));
              y.v.push_back(s.value), bound.scale.push_back(s.size);
            }
        const Call call{"conv2d", {ops::case_ints(TN_KEY_LO, {pad, pad}), ops::case_ints(TN_KEY_HI, {pad, pad})}, {x, w, {}}};
        const auto judge = [&](const Outcome& got) -> std::string {
          if (!got.ok()) return got.message;
          Array inner = got.out[0];
          for (size_t i = 0; i < open.size(); ++i)
            if (open[i]) inner.v[i] = y.v[i];
          return difference(y, inner, bound);
        };
        const std::string text = for_everyone(call, false, judge);
        if (!text.empty() && failures++ < 3) ADD_FAILURE() << "w[0] = " << number_text(in_w) << ", pad " << pad << ": " << text;
      }
}

// Blocked and padded layouts inside a kernel must not carry a NaN into windows that do not hold it.
TEST(SpecialProducts, of_conv2d_keep_a_nan_in_its_windows) {
  int failures = 0;
  for (uint32_t dtype : {TN_F32, TN_BF16, TN_F16, TN_F64})
    for (int64_t channels : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 18, 20, 31, 32, 33, 64})
      for (int64_t step : {1, 2})
        for (int64_t pad : {0, 1}) {
          if (!full_run() && (channels + step + pad + dtype) % 4 != 0) continue;
          const int64_t h = 7, w = 9, oh = (h + 2 * pad - 3) / step + 1, ow = (w + 2 * pad - 3) / step + 1, outs = channels < 16 ? 5 : channels;
          Array x{dtype, {2, channels, h, w}, plain(static_cast<size_t>(2 * channels * h * w))};
          x.v[static_cast<size_t>(((channels - 1) * h + 3) * w + 4)] = kNan;
          const Array k{dtype, {outs, channels, 3, 3}, plain(static_cast<size_t>(outs * channels * 9))};
          const auto judge = [&](const Outcome& o) -> std::string {
            if (!o.ok()) return o.message;
            for (size_t i = 0; i < o.out[0].v.size(); ++i) {
              const auto at = static_cast<int64_t>(i);
              const int64_t c = at % ow * step - pad, r = at / ow % oh * step - pad;
              const bool holds = at < outs * oh * ow && r <= 3 && 3 < r + 3 && c <= 4 && 4 < c + 3;
              if (std::isnan(o.out[0].v[i]) != holds) return "element " + std::to_string(i) + " of " + type_text(o.out[0]) + " is " + number_text(o.out[0].v[i]);
            }
            return {};
          };
          const Call call{"conv2d", {ops::case_ints(TN_KEY_STRIDES, {step, step}), ops::case_ints(TN_KEY_LO, {pad, pad}), ops::case_ints(TN_KEY_HI, {pad, pad})}, {x, k, {}}};
          const std::string text = for_everyone(call, false, judge);
          if (!text.empty() && failures++ < 12) ADD_FAILURE() << text;
        }
}

TEST(SpecialProducts, of_conv2d_input_grad_keep_a_nan_in_its_windows) {
  int failures = 0;
  for (uint32_t dtype : {TN_F32, TN_BF16, TN_F64})
    for (int64_t channels : {1, 2, 3, 5, 8, 16, 17, 32})
      for (int64_t step : {1, 2}) {
        const int64_t pad = 1, h = 9, w = 11, oh = (h - 1) / step + 1, ow = (w - 1) / step + 1, outs = channels;
        Array dy{dtype, {2, outs, oh, ow}, plain(static_cast<size_t>(2 * outs * oh * ow))};
        dy.v[static_cast<size_t>(((outs - 1) * oh + 2) * ow + 3)] = kNan;
        const Array k{dtype, {outs, 4, 3, 3}, plain(static_cast<size_t>(outs * 36))};
        const auto judge = [&](const Outcome& o) -> std::string {
          if (!o.ok()) return o.message;
          for (size_t i = 0; i < o.out[0].v.size(); ++i) {
            const auto at = static_cast<int64_t>(i);
            const int64_t c = at % w - (3 * step - pad), r = at / w % h - (2 * step - pad);
            const bool holds = at < 4 * h * w && r >= 0 && r < 3 && c >= 0 && c < 3;
            if (std::isnan(o.out[0].v[i]) != holds) return "element " + std::to_string(i) + " of " + type_text(o.out[0]) + " is " + number_text(o.out[0].v[i]);
          }
          return {};
        };
        const Call call{"conv2d_input_grad", {ops::case_ints(TN_KEY_STRIDES, {step, step}), ops::case_ints(TN_KEY_LO, {pad, pad}), ops::case_ints(TN_KEY_HI, {pad, pad}),
                                              ops::case_ints(TN_KEY_DIMS, {2, 4, h, w})}, {dy, k}};
        const std::string text = for_everyone(call, false, judge);
        if (!text.empty() && failures++ < 6) ADD_FAILURE() << text;
      }
}

// Rows of logits with odd values: a NaN or +inf in its row alone, an ignored row gives 0 whatever it holds.
TEST(SpecialNorms, of_cross_entropy_stay_in_their_row) {
  for (uint32_t dtype : {TN_F32, TN_F64, TN_F16, TN_BF16})
    for (int64_t classes : {1, 2, 10, 33}) {
      const Numbers odd{kNan, kInf, 0.25L, kNan, -kInf};
      const auto rows = static_cast<int64_t>(odd.size());
      Array x{dtype, {rows, classes}, plain(static_cast<size_t>(rows * classes))}, target{TN_I64, {rows}, Numbers(odd.size(), 0)};
      for (int64_t r = 0; r < rows; ++r) x.v[static_cast<size_t>(r * classes + classes - 1)] = odd[static_cast<size_t>(r)];
      target.v[3] = -100;
      Array y{dtype, {rows}, {}};
      Bound bound{32, {}};
      for (int64_t r = 0; r < rows; ++r) {
        Number sum = 0;
        for (int64_t c = 0; c < classes; ++c) sum += std::exp(x.v[static_cast<size_t>(r * classes + c)]);
        const Number first = x.v[static_cast<size_t>(r * classes)];
        y.v.push_back(r == 3 ? 0 : std::isfinite(sum) && sum > 0 ? std::log(sum) - first : kNan);
        bound.scale.push_back(r == 3 ? 0 : 2);
      }
      EXPECT_EQ(differences({"cross_entropy", {}, {x, target}}, {{y}, {bound}}, false), "");
    }
}

// A channel with a NaN or an infinity is NaN, the others are untouched.
TEST(SpecialNorms, of_batch_norm_stay_in_their_channel) {
  int failures = 0;
  for (uint32_t dtype : {TN_F32, TN_F64, TN_BF16})
    for (const auto& [n, hw] : {std::pair<int64_t, int64_t>{3, 7}, {2, 33}, {1, 2}}) {
      const Numbers odd{kNan, kInf, -kInf, 0.25L, -0.0L};
      const auto channels = static_cast<int64_t>(odd.size());
      Array x{dtype, {n, channels, hw}, plain(static_cast<size_t>(n * channels * hw))};
      for (int64_t c = 0; c < channels; ++c) x.v[static_cast<size_t>(c * hw + hw - 1)] = odd[static_cast<size_t>(c)];
      const auto judge = [&, hw = hw](const Outcome& o) -> std::string {
        if (!o.ok()) return o.message;
        for (size_t i = 0; i < o.out[0].v.size(); ++i) {
          const auto c = static_cast<size_t>(static_cast<int64_t>(i) / hw % channels);
          if (std::isnan(o.out[0].v[i]) == std::isfinite(odd[c])) return "element " + std::to_string(i) + " is " + number_text(o.out[0].v[i]);
        }
        for (size_t c = 0; c < odd.size(); ++c) {
          const Number mean = o.out[1].v[c], variance = o.out[2].v[c];
          const bool fits = std::isnan(odd[c]) ? std::isnan(mean) : std::isinf(odd[c]) ? mean == odd[c] : std::isfinite(mean);
          if (!fits || std::isnan(variance) == std::isfinite(odd[c])) return "mean " + number_text(mean) + ", variance " + number_text(variance) + " of channel " + std::to_string(c);
        }
        return {};
      };
      const std::string text = for_everyone({"batch_norm", {}, {x, {}, {}}}, false, judge);
      if (!text.empty() && failures++ < 2) ADD_FAILURE() << text;
    }
}

}  // namespace
}  // namespace tenon::conformance
