// Values of expansions against formulas written out here.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/movement/rule_tools.h"
#include "tests/ops_nn/case_run.h"

namespace tenon::ops::test {
namespace {

using Index = std::vector<int64_t>;

void expect_near(const std::vector<Number>& got, const std::vector<Number>& want, Number tolerance = 1e-12L) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) EXPECT_TRUE(std::isnan(got[i])) << i;
    else if (std::isinf(want[i])) EXPECT_EQ(got[i], want[i]) << i;
    else EXPECT_LE(std::fabs(got[i] - want[i]), tolerance * (1 + std::fabs(want[i]))) << i << ": " << static_cast<double>(got[i]) << " against " << static_cast<double>(want[i]);
  }
}

Number at4(const Array& a, int64_t n, int64_t c, int64_t h, int64_t w) {
  return a.data[static_cast<size_t>(((n * a.dims[1] + c) * a.dims[2] + h) * a.dims[3] + w)];
}

int64_t attr_of(const Case& c, uint32_t key, size_t i) {
  for (const CaseAttr& a : c.attrs)
    if (a.key == key) return a.kind == CaseAttr::Kind::I64 ? a.i : a.list[i];
  return key == TN_KEY_LO || key == TN_KEY_HI ? 0 : 1;
}

// f(n, c, place h, place w, tap k, tap l, source h, source w, inside) for every tap of every window.
template <class F>
void each_tap(const Case& c, const Index& x, const Index& y, int64_t kh, int64_t kw, F f) {
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t ch = 0; ch < y[1]; ++ch)
      for (int64_t i = 0; i < y[2]; ++i)
        for (int64_t j = 0; j < y[3]; ++j)
          for (int64_t k = 0; k < kh; ++k)
            for (int64_t l = 0; l < kw; ++l) {
              const int64_t h = i * attr_of(c, TN_KEY_STRIDES, 0) - attr_of(c, TN_KEY_LO, 0) + k * attr_of(c, TN_KEY_DILATIONS, 0);
              const int64_t w = j * attr_of(c, TN_KEY_STRIDES, 1) - attr_of(c, TN_KEY_LO, 1) + l * attr_of(c, TN_KEY_DILATIONS, 1);
              f(n, ch, i, j, k, l, h, w, h >= 0 && h < x[2] && w >= 0 && w < x[3]);
            }
}

class Layouts : public testing::TestWithParam<bool> {  // true: x channels-last
 protected:
  std::vector<Array> go(const CaseCall& call) {
    std::vector<tn_type> types;
    for (const Array& a : call.in) types.push_back(a.dims.size() == 4 && GetParam() ? channels_last_type(a.dtype, a.dims) : make_type(a.dtype, a.dims));
    return run_typed(call.call, call.in, types);
  }
};
INSTANTIATE_TEST_SUITE_P(Both, Layouts, testing::Bool(), [](const auto& info) { return info.param ? "channels_last" : "row_major"; });

TEST_P(Layouts, conv2d_is_the_sum_over_taps) {
  size_t number = 0;
  for (const Case& c : find_op(TN_OPID_CONV2D)->cases()) {
    SCOPED_TRACE(number++);
    const CaseCall call = make_call(*find_op(TN_OPID_CONV2D), c);
    const Array &x = call.in[0], &w = call.in[1], &bias = call.in[2];
    const Array y = go(call)[0];
    Array want{TN_F64, y.dims, std::vector<Number>(y.data.size(), 0)};
    const int64_t per_group = w.dims[0] / attr_of(c, TN_KEY_GROUPS, 0);
    for (size_t i = 0; i < want.data.size(); ++i) {
      const int64_t o = static_cast<int64_t>(i) / (y.dims[2] * y.dims[3]) % y.dims[1];
      want.data[i] = bias.dtype ? bias.data[static_cast<size_t>(o)] : 0;
    }
    each_tap(c, x.dims, y.dims, w.dims[2], w.dims[3], [&](int64_t n, int64_t o, int64_t i, int64_t j, int64_t k, int64_t l, int64_t h, int64_t v, bool inside) {
      if (!inside) return;
      for (int64_t ch = 0; ch < w.dims[1]; ++ch)
        want.data[static_cast<size_t>(((n * y.dims[1] + o) * y.dims[2] + i) * y.dims[3] + j)] += at4(w, o, ch, k, l) * at4(x, n, o / per_group * w.dims[1] + ch, h, v);
    });
    expect_near(y.data, want.data);
  }
}

TEST_P(Layouts, conv2d_gradients_are_sums_over_taps) {
  for (bool to_input : {true, false}) {
    const OpDecl& decl = *find_op(to_input ? TN_OPID_CONV2D_INPUT_GRAD : TN_OPID_CONV2D_WEIGHT_GRAD);
    size_t number = 0;
    for (const Case& c : decl.cases()) {
      SCOPED_TRACE(std::string(decl.def.name) + std::to_string(number++));
      const CaseCall call = make_call(decl, c);
      const Array got = go(call)[0];
      const Array& dy = call.in[to_input ? 0 : 1];
      const Index x_dims = to_input ? got.dims : call.in[0].dims, w_dims = to_input ? call.in[1].dims : got.dims;
      Array want{TN_F64, got.dims, std::vector<Number>(got.data.size(), 0)};
      const int64_t per_group = w_dims[0] / attr_of(c, TN_KEY_GROUPS, 0);
      each_tap(c, x_dims, dy.dims, w_dims[2], w_dims[3], [&](int64_t n, int64_t o, int64_t i, int64_t j, int64_t k, int64_t l, int64_t h, int64_t v, bool inside) {
        for (int64_t ch = 0; inside && ch < w_dims[1]; ++ch) {
          const int64_t from = o / per_group * w_dims[1] + ch;
          const size_t in_x = static_cast<size_t>(((n * x_dims[1] + from) * x_dims[2] + h) * x_dims[3] + v), in_w = static_cast<size_t>(((o * w_dims[1] + ch) * w_dims[2] + k) * w_dims[3] + l);
          if (to_input) want.data[in_x] += at4(dy, n, o, i, j) * call.in[1].data[in_w];
          else want.data[in_w] += at4(dy, n, o, i, j) * call.in[0].data[in_x];
        }
      });
      expect_near(got.data, want.data);
    }
  }
}

TEST_P(Layouts, pools_are_maximum_and_mean_of_windows) {
  for (uint64_t id : {TN_OPID_MAX_POOL2D, TN_OPID_AVG_POOL2D}) {
    size_t number = 0;
    for (const Case& c : find_op(id)->cases()) {
      SCOPED_TRACE(std::string(find_op(id)->def.name) + std::to_string(number++));
      const CaseCall call = make_call(*find_op(id), c);
      const Array& x = call.in[0];
      const Array y = go(call)[0];
      std::vector<Number> top(y.data.size(), -INFINITY), sum(y.data.size(), 0), taps(y.data.size(), 0), all(y.data.size(), 0);
      each_tap(c, x.dims, y.dims, attr_of(c, TN_KEY_KERNEL, 0), attr_of(c, TN_KEY_KERNEL, 1),
               [&](int64_t n, int64_t ch, int64_t i, int64_t j, int64_t, int64_t, int64_t h, int64_t w, bool inside) {
                 const auto o = static_cast<size_t>(((n * y.dims[1] + ch) * y.dims[2] + i) * y.dims[3] + j);
                 all[o] += 1;
                 if (!inside) return;
                 top[o] = std::max(top[o], at4(x, n, ch, h, w));
                 sum[o] += at4(x, n, ch, h, w);
                 taps[o] += 1;
               });
      bool include = false;
      for (const CaseAttr& a : c.attrs) include = include || (a.key == TN_KEY_INCLUDE_PAD && a.i != 0);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] /= include ? all[i] : std::max<Number>(taps[i], 1);
      expect_near(y.data, id == TN_OPID_MAX_POOL2D ? top : sum);
    }
  }
}

TEST_P(Layouts, batch_norm_uses_the_channel_statistics) {
  for (const Case& c : find_op(TN_OPID_BATCH_NORM)->cases()) {
    const CaseCall call = make_call(*find_op(TN_OPID_BATCH_NORM), c);
    const Array& x = call.in[0];
    const std::vector<Array> got = go(call);
    const int64_t channels = x.dims[1], inner = count(x.dims) == 0 ? 0 : count(x.dims) / x.dims[0] / channels;
    if (inner == 0) continue;
    double epsilon = 1e-5;
    for (const CaseAttr& a : c.attrs) epsilon = a.f;
    std::vector<Number> mean(static_cast<size_t>(channels), 0), variance = mean, y(x.data.size());
    const auto channel = [&](size_t i) { return i / static_cast<size_t>(inner) % static_cast<size_t>(channels); };
    const Number m = static_cast<Number>(x.dims[0] * inner);
    for (size_t i = 0; i < x.data.size(); ++i) mean[channel(i)] += x.data[i] / m;
    for (size_t i = 0; i < x.data.size(); ++i) variance[channel(i)] += std::pow(x.data[i] - mean[channel(i)], 2.0L) / m;
    for (size_t i = 0; i < x.data.size(); ++i) {
      y[i] = (x.data[i] - mean[channel(i)]) / std::sqrt(variance[channel(i)] + static_cast<Number>(epsilon));
      if (call.in[1].dtype) y[i] *= call.in[1].data[channel(i)];
      if (call.in[2].dtype) y[i] += call.in[2].data[channel(i)];
    }
    expect_near(got[0].data, y, 1e-10L);
    expect_near(got[1].data, mean, 1e-10L);
    expect_near(got[2].data, variance, 1e-10L);
  }
}

TEST(Pad, puts_elements_where_the_formula_says) {
  size_t number = 0;
  for (const Case& c : find_op(TN_OPID_PAD)->cases()) {
    SCOPED_TRACE(number++);
    const CaseCall call = make_call(*find_op(TN_OPID_PAD), c);
    const Array y = run(call.call, call.in)[0], &x = call.in[0];
    std::vector<Number> want(y.data.size(), static_cast<Number>(c.push[0]));
    for (size_t flat = 0; flat < x.data.size(); ++flat) {
      int64_t rest = static_cast<int64_t>(flat), to = 0, scale = 1;
      bool inside = true;
      for (size_t i = x.dims.size(); i-- > 0;) {
        const int64_t j = rest % x.dims[i], interior = c.attrs.size() > 2 ? c.attrs[2].list[i] : 0;
        const int64_t place = c.attrs[0].list[i] + j * (interior + 1);
        rest /= x.dims[i];
        inside = inside && place >= 0 && place < y.dims[i];
        to += place * scale;
        scale *= y.dims[i];
      }
      if (inside) want[static_cast<size_t>(to)] = x.data[flat];
    }
    expect_near(y.data, want, 0);
  }
}

TEST(Concat, joins_along_the_axis) {
  for (const Case& c : find_op(TN_OPID_CONCAT)->cases()) {
    const CaseCall call = make_call(*find_op(TN_OPID_CONCAT), c);
    const Array y = run(call.call, call.in)[0];
    const auto axis = static_cast<size_t>(normalise_axis(c.attrs[0].i, static_cast<int64_t>(y.dims.size())));
    std::vector<Number> want;
    const int64_t outer = count({y.dims.begin(), y.dims.begin() + static_cast<long>(axis)});
    for (int64_t o = 0; o < outer; ++o)
      for (const Array& a : call.in) {
        const int64_t block = count({a.dims.begin() + static_cast<long>(axis), a.dims.end()});
        want.insert(want.end(), a.data.begin() + o * block, a.data.begin() + (o + 1) * block);
      }
    expect_near(y.data, want, 0);
  }
}

TEST(Take, reads_slices_and_counts_from_the_end) {
  const Call take{TN_OPID_TAKE, {Attr::i64(TN_KEY_AXIS, 1)}, {}};
  const Array y = run(take, {{TN_F64, {2, 3}, {0, 1, 2, 3, 4, 5}}, {TN_I64, {2, 1}, {-1, 0}}})[0];
  EXPECT_EQ(y.dims, (Index{2, 2, 1}));
  EXPECT_EQ(y.data, (std::vector<Number>{2, 0, 5, 3}));
}

TEST(OneHot, gives_zero_rows_outside) {
  const Call hot{TN_OPID_ONE_HOT, {Attr::i64(TN_KEY_DEPTH, 3), Attr::i64(TN_KEY_DTYPE, TN_F64)}, {}};
  EXPECT_EQ(run(hot, {{TN_I32, {3}, {1, -1, 3}}})[0].data, (std::vector<Number>{0, 1, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Softmax, follows_its_rules_for_special_rows) {  // K13
  const Number inf = INFINITY, nan = NAN;
  const Array x{TN_F64, {5, 3}, {-inf, -inf, -inf, nan, -inf, 1, 1000, 1000, -inf, inf, 0, 0, 0, 0, 0}};
  const Number third = 1.0L / 3, log3 = -std::log(3.0L), log2 = -std::log(2.0L);
  expect_near(run({TN_OPID_SOFTMAX, {}, {}}, {x})[0].data, {nan, nan, nan, nan, nan, nan, 0.5L, 0.5L, 0, nan, nan, nan, third, third, third}, 1e-15L);
  expect_near(run({TN_OPID_LOG_SOFTMAX, {}, {}}, {x})[0].data, {nan, nan, nan, nan, nan, nan, log2, log2, -inf, nan, nan, nan, log3, log3, log3}, 1e-15L);
}

TEST(CrossEntropy, skips_ignored_rows_and_refuses_classes_outside) {
  const Call loss{TN_OPID_CROSS_ENTROPY, {}, {}};
  const Array x{TN_F64, {3, 2}, {0, 0, NAN, 1, 3, 1}};
  expect_near(run(loss, {x, {TN_I64, {3}, {0, -100, 1}}})[0].data, {std::log(2.0L), 0, 2 + std::log1p(std::exp(-2.0L))});
  EXPECT_THROW(run(loss, {x, {TN_I64, {3}, {0, 2, 1}}}), std::runtime_error);
  EXPECT_THROW(run(loss, {x, {TN_I64, {3}, {0, -1, 1}}}), std::runtime_error);
}

TEST(Random, follows_the_published_generator) {
  // Random123 kat_vectors, philox4x32-10: counter 0, key 0 gives 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
  const Call uniform{TN_OPID_RANDOM_UNIFORM, {Attr::ints(TN_KEY_DIMS, {2}), Attr::i64(TN_KEY_DTYPE, TN_F32)}, {literal_bits(0), literal_bits(0)}};
  EXPECT_EQ(run(uniform, {})[0].data[0], std::ldexp(static_cast<Number>(0x6627e8), -24));
  const Call wide{TN_OPID_RANDOM_UNIFORM, {Attr::ints(TN_KEY_DIMS, {1}), Attr::i64(TN_KEY_DTYPE, TN_F64)}, {literal_bits(0), literal_bits(0)}};
  EXPECT_EQ(run(wide, {})[0].data[0], (std::ldexp(static_cast<Number>(0x6627e8d5u >> 5), 26) + (0xe169c58du >> 6)) * std::ldexp(1.0L, -53));
}

TEST(Random, continues_where_an_offset_says) {
  const auto draw = [](int64_t n, uint64_t offset) {
    return run({TN_OPID_RANDOM_UNIFORM, {Attr::ints(TN_KEY_DIMS, {n}), Attr::i64(TN_KEY_DTYPE, TN_F32)}, {literal_bits(9), literal_bits(offset)}}, {})[0].data;
  };
  const auto all = draw(8, (uint64_t{1} << 32) - 4), tail = draw(4, uint64_t{1} << 32);
  EXPECT_EQ(std::vector<Number>(all.begin() + 4, all.end()), tail);
}

TEST(Random, normal_numbers_have_mean_0_and_deviation_1) {
  const auto x = run({TN_OPID_RANDOM_NORMAL, {Attr::ints(TN_KEY_DIMS, {20000}), Attr::i64(TN_KEY_DTYPE, TN_F32)}, {literal_bits(3), literal_bits(0)}}, {})[0].data;
  Number mean = 0, square = 0;
  for (Number v : x) mean += v / 20000, square += v * v / 20000;
  EXPECT_LT(std::fabs(mean), 0.03L);
  EXPECT_LT(std::fabs(square - 1), 0.04L);
}

TEST(Dropout, drops_about_the_rate_and_all_at_one) {
  const Array x{TN_F64, {4000}, std::vector<Number>(4000, 1)};
  const auto at = [&](double rate) { return run({TN_OPID_DROPOUT, {}, {literal_bits(1), literal_bits(0), literal(rate, TN_F64)}}, {x})[0].data; };
  int kept = 0;
  for (Number v : at(0.25)) {
    EXPECT_TRUE(v == 0 || std::fabs(v - 4.0L / 3) < 1e-12L);
    kept += v != 0;
  }
  EXPECT_NEAR(kept, 3000, 150);
  for (Number v : at(1)) EXPECT_EQ(v, 0);
  for (Number v : at(0)) EXPECT_EQ(v, 1);
}

TEST(SgdStep, follows_its_formula) {
  const auto step = [](double dampening, double nesterov) {
    const std::vector<tn_push> push{literal(0.1, TN_F64), literal(0.9, TN_F64), literal(0.5, TN_F64), literal(dampening, TN_F64), literal(nesterov, TN_F64)};
    return run({TN_OPID_SGD_STEP, {}, push, 2}, {{TN_F64, {1}, {2}}, {TN_F64, {1}, {3}}, {TN_F64, {1}, {10}}});
  };
  // g = 3 + 0.5 * 2 = 4; buffer = 9 + 4 = 13; p = 2 - 1.3. With dampening 0.5 and Nesterov: buffer = 11, d = 4 + 9.9.
  auto got = step(0, 0);
  expect_near({got[0].data[0], got[1].data[0]}, {0.7L, 13});
  got = step(0.5, 1);
  expect_near({got[0].data[0], got[1].data[0]}, {2 - 1.39L, 11});
}

TEST(AdamStep, follows_its_formula) {
  const std::vector<tn_push> push{literal(0.1, TN_F64), literal(0.9, TN_F64), literal(0.99, TN_F64), literal(0.5, TN_F64),
                                  literal(0.25, TN_F64), literal(0.5, TN_F64), literal(0.1, TN_F64), literal(0.01, TN_F64)};
  const auto got = run({TN_OPID_ADAM_STEP, {}, push, 3}, {{TN_F64, {1}, {2}}, {TN_F64, {1}, {3}}, {TN_F64, {1}, {1}}, {TN_F64, {1}, {4}}});
  const Number p = 2 * (1 - 0.1L * 0.5L), g = 3 + 0.25L * p, m = 0.9L + 0.1L * g, v = 0.99L * 4 + 0.01L * g * g;
  expect_near({got[0].data[0], got[1].data[0], got[2].data[0]}, {p - 0.1L * (m / 0.1L) / (std::sqrt(v / 0.01L) + 0.5L), m, v});
}

TEST(Expansions, run_for_every_case_and_keep_the_inferred_type) {
  for (uint64_t id : own_ops()) {
    const OpDecl& decl = *find_op(id);
    size_t number = 0;
    for (const Case& c : decl.cases()) {
      SCOPED_TRACE(std::string(decl.def.name) + " case " + std::to_string(number++));
      const CaseCall call = make_call(decl, c);
      EXPECT_NO_THROW(run(call.call, call.in));
    }
  }
}

}  // namespace
}  // namespace tenon::ops::test
