// reduce on an OpenCL device: every monoid and type, all forms, special values, low limits.
#include <cmath>

#include "tests/gpu_prims/case.h"

namespace tenon::test {
namespace {

constexpr int64_t kMonoids[] = {TN_MONOID_SUM, TN_MONOID_PROD, TN_MONOID_MAX, TN_MONOID_MIN, TN_MONOID_AND, TN_MONOID_OR, TN_MONOID_ARGMAX, TN_MONOID_ARGMIN};
constexpr uint32_t kTypes[] = {TN_BOOL, TN_U8, TN_I8, TN_U16, TN_I16, TN_U32, TN_I32, TN_U64, TN_I64, TN_F16, TN_BF16, TN_F32, TN_F64};

bool is_arg(int64_t m) { return m == TN_MONOID_ARGMAX || m == TN_MONOID_ARGMIN; }
bool floating(uint32_t d) { return d >= TN_F8E4M3 && d <= TN_F64; }

Case reduction(int64_t monoid, Operand x, const Dims& axes, bool keep, uint32_t out_dtype) {
  Case c(TN_OPID_REDUCE, 1);
  Dims kept;
  for (int64_t d = 0; d < x.type.rank; ++d) {
    const bool gone = std::find(axes.begin(), axes.end(), d) != axes.end();
    if (!gone) kept.push_back(x.type.dim[d]);
    else if (keep) kept.push_back(1);
  }
  c.operand = {std::move(x), make_operand(out_dtype, kept, Layout::Dense, 3)};
  c.attr_ints(TN_KEY_AXES, axes);
  c.attr_int(TN_KEY_KEEPDIMS, keep);
  c.attr_int(TN_KEY_MONOID, monoid);
  return c;
}

void check(Case& c, const gpu::Caps& caps, double ulps, double scale) {
  std::vector<Operand> got;
  const auto word = c.run("reduce", caps, &got);
  ASSERT_TRUE(word.has_value()) << c.refusal;
  EXPECT_EQ(*word, 0u);
  expect_same(c, c.reference(), got, 1, ulps, scale);
}

class Reduce : public testing::Test {
 protected:
  void SetUp() override {
    if (ClMachine::get() == nullptr) GTEST_SKIP() << "no OpenCL device";
    as_processor = ClMachine::get()->caps(), as_gpu = as_processor;
    as_gpu.device_class = gpu::DeviceClass::Gpu, as_gpu.compute_units = 4;
    low = lowered(as_gpu), low_processor = lowered(as_processor);
  }
  gpu::Caps as_processor, as_gpu, low, low_processor;
  std::mt19937 g{7};
};

TEST_F(Reduce, every_monoid_over_every_type_in_all_forms) {
  const std::pair<Dims, Dims> shapes[] = {{{5, 300}, {1}}, {{300, 7}, {0}}, {{1, 3000}, {1}}};
  for (const gpu::Caps& caps : {as_processor, as_gpu})
    for (uint32_t dtype : kTypes)
      for (int64_t m : kMonoids) {
        if (floating(dtype) && (m == TN_MONOID_AND || m == TN_MONOID_OR)) continue;
        for (const auto& [dims, axes] : shapes) {
          Operand x = make_operand(dtype, dims, Layout::Dense, 1);
          if (m == TN_MONOID_PROD && floating(dtype)) fill_random(&x, g, 0.97, 1.03);
          else fill_random(&x, g, dtype == TN_BOOL ? 0 : floating(dtype) || gpu::Caps{}.index64 == false ? -1 : 0, dtype == TN_BOOL ? 1 : floating(dtype) ? 1 : 120);
          SCOPED_TRACE(testing::Message() << "dtype " << dtype << " monoid " << m << " dims " << testing::PrintToString(dims) << " class " << static_cast<int>(caps.device_class));
          Case c = reduction(m, x, axes, true, is_arg(m) ? uint32_t{TN_I64} : dtype);
          const bool exact = !floating(dtype) || is_arg(m) || m == TN_MONOID_MAX || m == TN_MONOID_MIN;
          check(c, caps, exact ? 0 : m == TN_MONOID_PROD ? 3000 : 16, m == TN_MONOID_SUM ? 300 : 0);
        }
      }
}

TEST_F(Reduce, random_shapes_axes_and_strides_under_all_limits) {
  for (int round = 0; round < 120; ++round) {
    const int rank = static_cast<int>(g() % 4) + 1;
    Dims dims, axes;
    for (int d = 0; d < rank; ++d) {
      dims.push_back(static_cast<int64_t>(g() % (rank > 2 ? 14 : 70)));
      if (g() % 2) axes.push_back(d);
    }
    const int64_t m = kMonoids[g() % 4];
    const uint32_t dtype = std::vector<uint32_t>{TN_F32, TN_I32, TN_BF16, TN_F64}[g() % 4];
    const Layout layout = std::vector<Layout>{Layout::Dense, Layout::Transposed, Layout::Reversed, Layout::Spread}[g() % 4];
    Operand x = make_operand(dtype, dims, layout, static_cast<int64_t>(g() % 5));
    fill_random(&x, g, m == TN_MONOID_PROD ? 0.99 : -4, m == TN_MONOID_PROD ? 1.01 : 4);
    SCOPED_TRACE(testing::Message() << "round " << round << " dims " << testing::PrintToString(dims) << " axes " << testing::PrintToString(axes) << " monoid " << m << " dtype " << dtype);
    Case c = reduction(m, x, axes, g() % 2, dtype);
    const bool exact = dtype == TN_I32 || m == TN_MONOID_MAX || m == TN_MONOID_MIN;
    const gpu::Caps caps = std::vector<gpu::Caps>{as_processor, as_gpu, low, low_processor}[g() % 4];
    check(c, caps, exact ? 0 : m == TN_MONOID_PROD ? 5000 : 20, m == TN_MONOID_SUM ? 4 * 1000 : 0);
  }
}

TEST_F(Reduce, large_tensors_are_cut_where_bindings_are_small) {
  for (const auto& [dims, axes] : {std::pair<Dims, Dims>{{3, 70001}, {1}}, {{70001, 3}, {0}}, {{40, 50, 60}, {1}}, {{40, 50, 60}, {0, 2}}, {{200000}, {0}}})
    for (int64_t m : {TN_MONOID_SUM, TN_MONOID_MAX, TN_MONOID_ARGMAX}) {
      if (is_arg(m) && axes.size() > 1) continue;
      for (const gpu::Caps& caps : {low, low_processor, as_gpu, as_processor}) {
        Operand x = make_operand(TN_F32, dims, Layout::Dense, 7);
        fill_random(&x, g, -1, 1);
        SCOPED_TRACE(testing::Message() << testing::PrintToString(dims) << " monoid " << m << " class " << static_cast<int>(caps.device_class) << " bindings " << caps.binding_bytes);
        Case c = reduction(m, x, axes, false, is_arg(m) ? uint32_t{TN_I64} : uint32_t{TN_F32});
        double n = 1;
        for (int64_t a : axes) n *= static_cast<double>(dims[static_cast<size_t>(a)]);
        check(c, caps, m == TN_MONOID_SUM ? 8 + std::log2(n) : 0, n / 2);
        EXPECT_TRUE(c.steps > 1 || caps.binding_bytes != 65536) << c.steps;
      }
    }
}

// 0.1 is not a sum of powers of two: adding it up one after the other drifts far from the truth.
TEST_F(Reduce, long_sums_stay_within_the_promised_error) {
  for (const gpu::Caps& caps : {as_processor, as_gpu, low})
    for (const auto& [dims, axes] : {std::pair<Dims, Dims>{{1, 1 << 20}, {1}}, {{1 << 17, 8}, {0}}}) {
      Operand x = make_operand(TN_F32, dims, Layout::Dense);
      for_each_index(x, [&](const Dims& at) { set(&x, at, 0.1); });
      Case c = reduction(TN_MONOID_SUM, x, axes, false, TN_F32);
      const double n = static_cast<double>(dims[static_cast<size_t>(axes[0])]);
      check(c, caps, (8 + std::log2(n)) / 2, 0);
    }
}

TEST_F(Reduce, special_values_follow_the_rules) {
  const double inf = INFINITY, nan = NAN;
  const std::vector<std::vector<double>> rows = {{1, nan, 3, nan}, {-0.0, 0.0, -0.0, 0.0}, {0.0, -0.0, 0.0, -0.0}, {inf, 1, -inf, 2}, {inf, inf, 1, 1}, {5, 7, 7, 7}, {-3, -3, -5, -5}, {1e30, 3e38, 3e38, -3e38}};
  for (const gpu::Caps& caps : {as_processor, as_gpu})
    for (uint32_t dtype : {TN_F32, TN_F64, TN_F16})
      for (int64_t m : {TN_MONOID_SUM, TN_MONOID_MAX, TN_MONOID_MIN, TN_MONOID_ARGMAX, TN_MONOID_ARGMIN})
        for (int copies : {1, 40}) {
          Operand x = make_operand(dtype, {static_cast<int64_t>(rows.size()), 4 * copies}, Layout::Dense);
          for_each_index(x, [&](const Dims& at) { set(&x, at, rows[static_cast<size_t>(at[0])][static_cast<size_t>(at[1] % 4)]); });
          SCOPED_TRACE(testing::Message() << "dtype " << dtype << " monoid " << m << " copies " << copies << " class " << static_cast<int>(caps.device_class));
          Case c = reduction(m, x, {1}, false, is_arg(m) ? uint32_t{TN_I64} : dtype);
          std::vector<Operand> got;
          ASSERT_TRUE(c.run("reduce", caps, &got).has_value()) << c.refusal;
          const std::vector<Operand> want = c.reference();
          for_each_index(want[1], [&](const Dims& at) {
            const double w = get(want[1], at), have = get(got[1], at);
            if (m == TN_MONOID_SUM && at[0] == 7 && dtype != TN_F64) return;  // overflows in f32 sums only; both are allowed
            EXPECT_TRUE((std::isnan(w) && std::isnan(have)) || (w == have && (m == TN_MONOID_SUM || std::signbit(w) == std::signbit(have)))) << at[0] << ": " << w << " " << have;
          });
        }
}

TEST_F(Reduce, an_empty_axis_gives_the_identity) {
  for (uint32_t dtype : kTypes)
    for (int64_t m : kMonoids) {
      if (is_arg(m) || (floating(dtype) && (m == TN_MONOID_AND || m == TN_MONOID_OR))) continue;
      SCOPED_TRACE(testing::Message() << "dtype " << dtype << " monoid " << m);
      Case c = reduction(m, make_operand(dtype, {3, 0}, Layout::Dense), {1}, false, dtype);
      check(c, as_gpu, 0, 0);
    }
  Case c = reduction(TN_MONOID_ARGMAX, make_operand(TN_F32, {3, 0}, Layout::Dense), {1}, false, TN_I64);
  std::vector<Operand> got;
  EXPECT_FALSE(c.run("reduce", as_gpu, &got).has_value());
  EXPECT_NE(c.refusal.find("empty axis"), std::string::npos);
}

// sum over axis 1 of (x * y + s), then out0 = r * t, out1 = sqrt(|r|) in f32 from f16 inputs.
TEST_F(Reduce, programs_before_and_after_with_broadcast_inputs_and_pushed_scalars) {
  for (const gpu::Caps& caps : {as_processor, as_gpu, low}) {
    Case c(TN_OPID_REDUCE, 2);
    Operand x = make_operand(TN_F16, {9, 1000}, Layout::Dense), y = make_operand(TN_F16, {1000}, Layout::Reversed);
    fill_random(&x, g, -1, 1), fill_random(&y, g, -1, 1);
    c.operand = {x, y, make_operand(TN_F32, {9}, Layout::Dense), make_operand(TN_F16, {9}, Layout::Dense)};
    c.attr_ints(TN_KEY_AXES, {1});
    c.attr_int(TN_KEY_MONOID, TN_MONOID_SUM);
    c.attr_program(TN_KEY_PRE, {{TN_OP_INPUT, TN_F16, 0, 0, 0}, {TN_OP_INPUT, TN_F16, 1, 0, 0}, {TN_OP_CAST, TN_F32, 0, 0, 0}, {TN_OP_CAST, TN_F32, 1, 0, 0},
                                {TN_OP_CONST, TN_F32, 0, 0, 0}, {TN_OP_FMA, TN_F32, 2, 3, 4}}, 2, {5}, 1);
    c.attr_program(TN_KEY_POST, {{TN_OP_INPUT, TN_F32, 0, 0, 0}, {TN_OP_CONST, TN_F32, 1, 0, 0}, {TN_OP_MUL, TN_F32, 0, 1, 0}, {TN_OP_ABS, TN_F32, 0, 0, 0},
                                 {TN_OP_SQRT, TN_F32, 3, 0, 0}, {TN_OP_CAST, TN_F16, 4, 0, 0}}, 1, {2, 5}, 2);
    const float s = 0.25f, t = 3.f;
    c.push = {0, 0};
    std::memcpy(&c.push[0], &s, 4), std::memcpy(&c.push[1], &t, 4);
    std::vector<Operand> got;
    ASSERT_TRUE(c.run("reduce", caps, &got).has_value()) << c.refusal;
    expect_same(c, c.reference(), got, 2, 32, 3 * 500);
  }
}

}  // namespace
}  // namespace tenon::test
