// The reduce and copy rows against brute force in long double.
#include "tests/cpu/harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace tenon::test {
namespace {

const char* const kReduce = "cpu.reduce";
constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

class Reduce : public testing::TestWithParam<const char*> {
 protected:
  Pack pack{GetParam(), 2};
};
INSTANTIATE_TEST_SUITE_P(InstructionSets, Reduce, testing::Values("baseline", "avx2", "avx512"), [](auto& i) { return std::string(i.param); });

struct Shape {
  std::vector<int64_t> dims, strides, axes;
};
// Calls f(output index, input offset) for every element in row-major order.
template <class F>
void for_each(const Shape& s, F&& f) {
  std::vector<int64_t> at(s.dims.size(), 0);
  int64_t n = 1;
  for (int64_t d : s.dims) n *= d;
  for (int64_t i = 0; i < n; ++i) {
    int64_t out = 0, offset = 0;
    for (size_t k = 0; k < at.size(); ++k) {
      offset += at[k] * s.strides[k];
      bool reduced = false;
      for (int64_t a : s.axes) reduced = reduced || a == int64_t(k);
      if (!reduced) out = out * s.dims[k] + at[k];
    }
    f(out, offset);
    for (size_t k = at.size(); k-- > 0 && ++at[k] == s.dims[k];) at[k] = 0;
  }
}
std::vector<int64_t> kept_dims(const Shape& s) {
  std::vector<int64_t> d;
  for (size_t k = 0; k < s.dims.size(); ++k)
    if (std::find(s.axes.begin(), s.axes.end(), int64_t(k)) == s.axes.end()) d.push_back(s.dims[k]);
  return d;
}
const Shape kShapes[] = {
    {{7}, {1}, {0}}, {{70}, {2}, {0}}, {{5, 9}, {9, 1}, {1}}, {{5, 9}, {9, 1}, {0}}, {{300, 700}, {700, 1}, {0}}, {{300, 700}, {700, 1}, {1}},
    {{300, 700}, {1, 300}, {1}}, {{2, 3, 4, 5}, {60, 20, 5, 1}, {0, 2}}, {{2, 3, 4, 5}, {60, 20, 5, 1}, {1, 3}}, {{4, 600, 3}, {1800, 3, 1}, {2}},
    {{4, 600, 3}, {1800, 3, 1}, {0, 1}}, {{64, 3, 50}, {0, 50, 1}, {0}}, {{40, 30}, {30, -1}, {1}}, {{1, 1}, {1, 1}, {0}}, {{200000}, {1}, {0}},
    {{300000, 2}, {2, 1}, {0}}, {{6, 1, 33}, {33, 33, 1}, {0, 1, 2}}};

TEST_P(Reduce, f32_sums_are_right_for_every_axis_order_and_stride) {
  for (const Shape& s : kShapes) {
    std::vector<float> x(600000 + 64);
    std::mt19937 rng(7);
    std::normal_distribution<float> normal(0.1f, 1);
    for (float& v : x) v = normal(rng);
    float* base = x.data() + 32;
    const auto out_dims = kept_dims(s);
    int64_t n_out = 1, n = 1;
    for (int64_t d : out_dims) n_out *= d;
    for (int64_t d : s.dims) n *= d;
    std::vector<long double> want(size_t(n_out), 0), mass(size_t(n_out), 0);
    for_each(s, [&](int64_t o, int64_t at) { want[size_t(o)] += base[at], mass[size_t(o)] += std::fabs(base[at]); });
    Op op(TN_OPID_REDUCE);
    op.in(Op::with_strides(TN_F32, s.dims, s.strides)).out(TN_F32, out_dims).ints(TN_KEY_AXES, s.axes).i64(TN_KEY_KEEPDIMS, 0).i64(TN_KEY_MONOID, TN_MONOID_SUM);
    std::vector<float> y(size_t(n_out), -1);
    ASSERT_EQ(pack.run(kReduce, op, {base, y.data()}), TN_OK);
    const double bound = 8 + std::log2(double(n) / double(n_out));
    for (size_t i = 0; i < y.size(); ++i) ASSERT_LE(std::fabs(y[i] - want[i]), bound * mass[i] * 0x1p-24L) << "output " << i << " of shape with " << s.dims.size() << " axes, n=" << n;
  }
}
TEST_P(Reduce, every_monoid_of_integers_matches_loops) {
  for (const Shape& s : kShapes) {
    if (s.dims[0] > 10000) continue;
    std::vector<int32_t> x(220000 + 64);
    std::mt19937 rng(9);
    for (int32_t& v : x) v = int32_t(rng());
    int32_t* base = x.data() + 32;
    const auto out_dims = kept_dims(s);
    int64_t n_out = 1;
    for (int64_t d : out_dims) n_out *= d;
    for (uint32_t m : {TN_MONOID_SUM, TN_MONOID_PROD, TN_MONOID_MAX, TN_MONOID_MIN, TN_MONOID_AND, TN_MONOID_OR}) {
      const int32_t start[] = {0, 0, 1, INT32_MIN, INT32_MAX, -1, 0};
      std::vector<int32_t> want(size_t(n_out), start[m]), y(size_t(n_out), 5);
      for_each(s, [&](int64_t o, int64_t at) {
        int32_t& w = want[size_t(o)];
        const int32_t v = base[at];
        w = m == TN_MONOID_SUM ? int32_t(uint32_t(w) + uint32_t(v)) : m == TN_MONOID_PROD ? int32_t(uint32_t(w) * uint32_t(v)) : m == TN_MONOID_MAX ? std::max(w, v)
          : m == TN_MONOID_MIN ? std::min(w, v) : m == TN_MONOID_AND ? (w & v) : (w | v);
      });
      Op op(TN_OPID_REDUCE);
      op.in(Op::with_strides(TN_I32, s.dims, s.strides)).out(TN_I32, out_dims).ints(TN_KEY_AXES, s.axes).i64(TN_KEY_MONOID, m);
      ASSERT_EQ(pack.run(kReduce, op, {base, y.data()}), TN_OK);
      ASSERT_EQ(y, want) << "monoid " << m;
    }
  }
}
float reduce_all(Pack& pack, uint32_t monoid, std::vector<float> x) {
  Op op(TN_OPID_REDUCE);
  op.in(TN_F32, {int64_t(x.size())}).out(TN_F32, {}).ints(TN_KEY_AXES, {0}).i64(TN_KEY_MONOID, monoid);
  float y = 7;
  EXPECT_EQ(pack.run(kReduce, op, {x.data(), &y}), TN_OK);
  return y;
}
TEST_P(Reduce, nan_wins_maxima_and_minima_at_any_place_and_length) {
  for (size_t n = 1; n <= 70; ++n)
    for (size_t at : {size_t{0}, n / 2, n - 1}) {
      std::vector<float> x(n, 1.0f);
      x[at] = kNan;
      ASSERT_TRUE(std::isnan(reduce_all(pack, TN_MONOID_MAX, x))) << n;
      ASSERT_TRUE(std::isnan(reduce_all(pack, TN_MONOID_MIN, x))) << n;
      x[at] = 9;
      ASSERT_EQ(reduce_all(pack, TN_MONOID_MAX, x), 9.0f);
      x[at] = -kInf;
      ASSERT_EQ(reduce_all(pack, TN_MONOID_MIN, x), -kInf);
    }
  std::vector<float> x(1000, -0.0f);
  x[500] = 0.0f;
  EXPECT_FALSE(std::signbit(reduce_all(pack, TN_MONOID_MAX, x)));
  EXPECT_TRUE(std::signbit(reduce_all(pack, TN_MONOID_MIN, x)));
}
TEST_P(Reduce, empty_axes_give_the_identity) {
  EXPECT_EQ(reduce_all(pack, TN_MONOID_SUM, {}), 0.0f);
  EXPECT_EQ(reduce_all(pack, TN_MONOID_PROD, {}), 1.0f);
  EXPECT_EQ(reduce_all(pack, TN_MONOID_MAX, {}), -kInf);
  EXPECT_EQ(reduce_all(pack, TN_MONOID_MIN, {}), kInf);
  Op op(TN_OPID_REDUCE);
  op.in(TN_F32, {0, 3}).out(TN_F32, {3}).ints(TN_KEY_AXES, {0}).i64(TN_KEY_MONOID, TN_MONOID_SUM);
  float y[3] = {4, 4, 4}, x = 0;
  ASSERT_EQ(pack.run(kReduce, op, {&x, y}), TN_OK);
  EXPECT_EQ(y[2], 0.0f);
  // Conjunctions of nothing are all ones, of any width; disjunctions zero.
  const auto bits = [&](uint32_t monoid, uint32_t dtype) {
    Op o(TN_OPID_REDUCE);
    o.in(dtype, {0}).out(dtype, {}).ints(TN_KEY_AXES, {0}).i64(TN_KEY_MONOID, monoid);
    uint64_t got = 0x5A5A5A5A5A5A5A5A;
    EXPECT_EQ(pack.run(kReduce, o, {&x, &got}), TN_OK);
    return dtype == TN_BOOL ? got & 0xFF : dtype == TN_I64 ? got : got & 0xFFFFFFFF;
  };
  EXPECT_EQ(bits(TN_MONOID_AND, TN_BOOL), 1u);
  EXPECT_EQ(bits(TN_MONOID_OR, TN_BOOL), 0u);
  EXPECT_EQ(bits(TN_MONOID_AND, TN_I32), 0xFFFFFFFFu);
  EXPECT_EQ(bits(TN_MONOID_AND, TN_I64), ~uint64_t{0});
  EXPECT_EQ(bits(TN_MONOID_OR, TN_I64), 0u);
}
TEST_P(Reduce, argmax_takes_the_first_of_equals_and_the_first_nan) {
  const auto arg = [&](uint32_t monoid, std::vector<float> x) {
    Op op(TN_OPID_REDUCE);
    op.in(TN_F32, {int64_t(x.size())}).out(TN_I64, {}).ints(TN_KEY_AXES, {0}).i64(TN_KEY_MONOID, monoid);
    int64_t y = -9;
    EXPECT_EQ(pack.run(kReduce, op, {x.data(), &y}), TN_OK);
    return y;
  };
  EXPECT_EQ(arg(TN_MONOID_ARGMAX, {1, 3, 3, 2}), 1);
  EXPECT_EQ(arg(TN_MONOID_ARGMIN, {1, 0, 0, 2}), 1);
  EXPECT_EQ(arg(TN_MONOID_ARGMAX, {1, kNan, 5, kNan}), 1);
  EXPECT_EQ(arg(TN_MONOID_ARGMIN, {-kInf, kNan}), 1);
  EXPECT_EQ(arg(TN_MONOID_ARGMAX, {-kInf, -kInf}), 0);
  std::vector<float> big(400000, 1);
  big[399999] = 2;
  EXPECT_EQ(arg(TN_MONOID_ARGMAX, big), 399999);
  big[1] = kNan;
  EXPECT_EQ(arg(TN_MONOID_ARGMAX, big), 1);
}
TEST_P(Reduce, programs_run_before_and_after_the_fold) {
  // mean of squared differences: sum((x - y)^2) * slot
  Prog pre;
  const uint16_t d = pre.add(TN_OP_SUB, TN_F32, pre.in(0, TN_F32), pre.in(1, TN_F32));
  pre.out(pre.add(TN_OP_MUL, TN_F32, d, d));
  Prog post;
  post.out(post.add(TN_OP_MUL, TN_F32, post.in(0, TN_F32), post.slot(0, TN_F32)));
  for (int64_t axis : {0, 1})
    for (int64_t rows : {3, 70, 1000}) {
      const int64_t cols = 37;
      std::vector<float> x(size_t(rows * cols)), y(size_t(cols), 0.5f), out(size_t(axis ? rows : cols));
      for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 13);
      Op op(TN_OPID_REDUCE);
      op.in(TN_F32, {rows, cols}).in(TN_F32, {cols}).out(TN_F32, {axis ? rows : cols}).ints(TN_KEY_AXES, {axis}).i64(TN_KEY_MONOID, TN_MONOID_SUM)
          .program(TN_KEY_PRE, pre).program(TN_KEY_POST, post).scalar(0.25f);
      ASSERT_EQ(pack.run(kReduce, op, {x.data(), y.data(), out.data()}), TN_OK);
      for (size_t o = 0; o < out.size(); ++o) {
        double want = 0;
        for (int64_t i = 0; i < (axis ? cols : rows); ++i) {
          const double v = x[axis ? o * size_t(cols) + size_t(i) : size_t(i * cols) + o] - 0.5;
          want += v * v;
        }
        ASSERT_NEAR(out[o], want * 0.25, 1e-5 * want) << rows;
      }
    }
}
TEST_P(Reduce, halves_accumulate_in_f32) {
  std::vector<uint16_t> ones(4096, 0x3C00);
  uint16_t y = 0;
  Op op(TN_OPID_REDUCE);
  op.in(TN_F16, {4096}).out(TN_F16, {}).ints(TN_KEY_AXES, {0}).i64(TN_KEY_MONOID, TN_MONOID_SUM);
  ASSERT_EQ(pack.run(kReduce, op, {ones.data(), &y}), TN_OK);
  EXPECT_EQ(y, 0x6C00);  // 4096
}
TEST_P(Reduce, one_plan_serves_all_sizes) {
  Op op(TN_OPID_REDUCE);
  op.in(Op::with_strides(TN_F32, {TN_SYM(0), TN_SYM(1)}, {TN_SYM(1), 1})).out(Op::with_strides(TN_F32, {TN_SYM(0)}, {1})).ints(TN_KEY_AXES, {1}).i64(TN_KEY_MONOID, TN_MONOID_SUM);
  const tn_kernel_plan* plan = pack.prepare(kReduce, op);
  for (int64_t rows : {2, 50})
    for (int64_t cols : {2, 17, 4000}) {
      std::vector<float> x(static_cast<size_t>(rows * cols), 1), y(static_cast<size_t>(rows));
      const int64_t dyn[] = {rows, cols};
      ASSERT_EQ(Pack::launch(plan, {x.data(), y.data()}, op, nullptr, dyn), TN_OK);
      for (float v : y) ASSERT_EQ(v, float(cols));
    }
  pack.retire(kReduce, plan);
}
TEST(ReduceThreads, results_do_not_depend_on_the_number_of_threads) {
  std::vector<float> x(1 << 20);
  std::mt19937 rng(1);
  for (float& v : x) v = std::normal_distribution<float>()(rng);
  float y[2];
  for (uint32_t threads : {1u, 4u}) {
    Pack pack(nullptr, threads);
    Op op(TN_OPID_REDUCE);
    op.in(TN_F32, {1 << 20}).out(TN_F32, {}).ints(TN_KEY_AXES, {0}).i64(TN_KEY_MONOID, TN_MONOID_SUM);
    ASSERT_EQ(pack.run(kReduce, op, {x.data(), &y[threads > 1]}), TN_OK);
  }
  EXPECT_EQ(y[0], y[1]);
}

template <class T>
void check_copy(Pack& pack, uint32_t dtype, std::vector<int64_t> dims, std::vector<int64_t> strides) {
  int64_t n = 1, reach = 1;
  for (size_t i = 0; i < dims.size(); ++i) n *= dims[i], reach += (dims[i] - 1) * std::abs(strides[i]);
  std::vector<T> x(static_cast<size_t>(2 * reach + 2)), y(static_cast<size_t>(n) + 1, T(77));
  for (size_t i = 0; i < x.size(); ++i) x[i] = T(i);
  T* base = x.data() + reach;
  Op op(TN_OPID_COPY);
  op.in(Op::with_strides(dtype, dims, strides)).out(dtype, dims);
  ASSERT_EQ(pack.run("cpu.copy", op, {base, y.data()}), TN_OK);
  size_t i = 0;
  for_each(Shape{dims, strides, {}}, [&](int64_t, int64_t at) {
    ASSERT_EQ(y[i], base[at]) << i;
    ++i;
  });
  ASSERT_EQ(y[size_t(n)], T(77));
}
TEST(Copy, any_strides_and_element_sizes_arrive_in_order) {
  Pack pack(nullptr, 2);
  check_copy<float>(pack, TN_F32, {100, 130}, {1, 100});
  check_copy<float>(pack, TN_F32, {64, 64}, {1, 64});
  check_copy<uint8_t>(pack, TN_U8, {70, 33}, {1, 70});
  check_copy<uint16_t>(pack, TN_F16, {3, 65, 40}, {2600, 1, 65});
  check_copy<double>(pack, TN_F64, {40, 3, 65}, {1, 2600, 40});
  check_copy<float>(pack, TN_F32, {2, 3, 5, 7}, {105, 35, -7, -1});
  check_copy<float>(pack, TN_F32, {4, 6, 6, 3, 3}, {64, 8, 1, 8, 1});  // windows
  check_copy<float>(pack, TN_F32, {9, 9}, {0, 0});
  check_copy<float>(pack, TN_F32, {0, 5}, {5, 1});
  check_copy<float>(pack, TN_F32, {}, {});
  check_copy<float>(pack, TN_F32, {1000, 700}, {1, 1000});
  for (int64_t n = 1; n <= 70; ++n) check_copy<float>(pack, TN_F32, {n, 40}, {1, n});
}

}  // namespace
}  // namespace tenon::test
