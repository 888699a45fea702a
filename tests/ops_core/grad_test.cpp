// Derivatives of scalar programs: against finite differences in long double, at the kinks, and cut to the limits.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernel/program.h"
#include "ops/emit.h"
#include "ops/scalar_grad.h"
#include "tests/ops_core/interpreter.h"

namespace tenon::ops {
namespace {

using test::Real;
using Id = ProgramBuilder::Id;

// Runs the parts of a cut; part inputs above `leaves` are values of earlier parts.
std::vector<Real> run_parts(const std::vector<ProgramPart>& parts, std::vector<Real> values, size_t targets,
                            const std::vector<uint64_t>& slots = {}) {
  std::vector<Real> result(targets);
  for (const ProgramPart& part : parts) {
    const tn_program p = part.program();
    tn_diag d{};
    EXPECT_EQ(kernel::validate_program(p, &d), TN_OK) << d.msg;
    std::vector<Real> in;
    for (uint32_t n : part.in) in.push_back(values.at(n));
    std::vector<uint64_t> push;
    for (const tn_push& k : part.push) push.push_back(k.from == TN_NONE ? k.bits : slots.at(k.from));
    const std::vector<Real> out = test::run_program(p, in, push);
    for (size_t k = 0; k < out.size(); ++k)
      if (part.target[k] == TN_NONE) values.push_back(out[k]);
      else result[part.target[k]] = out[k];
  }
  return result;
}

std::vector<Real> gradient(const tn_program& p, std::vector<Real> x, const std::vector<Real>& seed,
                           const std::vector<uint64_t>& slots = {}) {
  ScalarGraph g;
  const auto d = differentiate(p, ~uint64_t{0}, ~uint64_t{0}, &g);
  std::vector<CutTarget> targets;
  std::vector<size_t> input;
  for (size_t i = 0; i < d.size(); ++i)
    if (d[i] != TN_NONE) targets.push_back({d[i]}), input.push_back(i);
  const size_t n = x.size();
  x.insert(x.end(), seed.begin(), seed.end());
  const auto values = run_parts(cut(g, targets, static_cast<uint32_t>(x.size()), TN_NONE), x, targets.size(), slots);
  std::vector<Real> result(n, 0);
  for (size_t t = 0; t < values.size(); ++t) result[input[t]] = values[t];
  return result;
}

std::vector<uint64_t> slots_of(const ProgramBuilder& b) {
  std::vector<uint64_t> bits;
  for (const tn_push& p : b.literals()) bits.push_back(p.bits);
  return bits;
}

Real unary_gradient(uint32_t op, Real x, Real seed = 1) {
  ProgramBuilder b(TN_F64);
  b.output(b.op(op, b.input(0)));
  return gradient(*b.finish(), {x}, {seed})[0];
}

std::vector<Real> binary_gradient(uint32_t op, Real x, Real y, Real seed = 1) {
  ProgramBuilder b(TN_F64);
  b.output(b.op(op, b.input(0), b.input(1)));
  return gradient(*b.finish(), {x, y}, {seed});
}

void expect_finite_differences(const tn_program& p, const std::vector<Real>& x, const std::vector<uint64_t>& slots = {}) {
  std::vector<Real> seed;
  for (uint32_t k = 0; k < p.n_out; ++k) seed.push_back(0.7L - 0.3L * k);
  const std::vector<Real> got = gradient(p, x, seed, slots);
  for (size_t i = 0; i < x.size(); ++i) {
    const Real h = 1e-6L;
    std::vector<Real> hi = x, lo = x;
    hi[i] += h, lo[i] -= h;
    const auto a = test::run_program(p, hi, slots), b = test::run_program(p, lo, slots);
    Real expected = 0;
    for (size_t k = 0; k < a.size(); ++k) expected += seed[k] * (a[k] - b[k]) / (2 * h);
    EXPECT_NEAR(got[i], expected, 1e-7L * (1 + std::fabs(expected))) << "input " << i << " at " << x[i];
  }
}

TEST(ScalarGradient, of_every_unary_opcode_equals_finite_differences) {
  for (uint32_t op = TN_OP_NEG; op <= TN_OP_ERF; ++op)
    for (const Real x : {0.3L, 0.9L, 1.7L, 4.6L}) {
      SCOPED_TRACE(kernel::opcode_name(op));
      ProgramBuilder b(TN_F64);
      b.output(b.op(op, b.input(0)));
      expect_finite_differences(*b.finish(), {x});
      const bool any_sign = op != TN_OP_SQRT && op != TN_OP_RSQRT && op != TN_OP_LOG && op != TN_OP_LOG1P;
      if (any_sign) expect_finite_differences(*b.finish(), {-x});
    }
}

TEST(ScalarGradient, of_every_binary_opcode_equals_finite_differences) {
  for (uint32_t op = TN_OP_ADD; op <= TN_OP_ATAN2; ++op)
    for (const Real x : {0.3L, 1.7L, 5.3L})
      for (const Real y : {0.4L, 2.3L, -1.1L}) {
        SCOPED_TRACE(kernel::opcode_name(op));
        ProgramBuilder b(TN_F64);
        b.output(b.op(op, b.input(0), b.input(1)));
        expect_finite_differences(*b.finish(), {x, y});
      }
}

TEST(ScalarGradient, of_fma_select_and_shared_values_over_two_outputs) {
  ProgramBuilder b(TN_F64);
  const Id x = b.input(0), y = b.input(1), s = b.slot(0);
  const Id t = b.op(TN_OP_FMA, x, y, b.op(TN_OP_SIN, x));
  b.output(b.op(TN_OP_SELECT, b.op(TN_OP_LT, x, y), b.op(TN_OP_MUL, t, t), b.op(TN_OP_EXP, t)));
  b.output(b.op(TN_OP_MUL, b.op(TN_OP_TANH, t), s));
  const uint64_t slot = literal(1.5, TN_F64).bits;
  expect_finite_differences(*b.finish(), {0.3L, 0.8L}, {slot});
  expect_finite_differences(*b.finish(), {0.9L, -0.2L}, {slot});
}

TEST(ScalarGradient, casts_to_the_type_of_each_side) {
  ProgramBuilder b(TN_F16);
  b.output(b.op(TN_OP_MUL, b.input(0), b.input(1)));
  ScalarGraph g;
  const auto d = differentiate(*b.finish(), 3, 1, &g);
  EXPECT_EQ(g.type_of(d[0]), TN_F32);
  EXPECT_EQ(gradient(*b.finish(), {3, 5}, {2})[0], 10);
}

TEST(ScalarGradient, reaches_neither_integers_nor_through_them) {
  ProgramBuilder b(TN_F64);
  const Id i = b.cast(b.input(0), TN_I64);
  b.output(b.op(TN_OP_ADD, b.cast(i, TN_F64), b.cast(b.input(1, TN_I32), TN_F64)));
  ScalarGraph g;
  for (ScalarGraph::Id v : differentiate(*b.finish(), 3, 1, &g)) EXPECT_EQ(v, TN_NONE);
}

TEST(ScalarGradient, asks_only_for_what_it_reads) {
  ProgramBuilder b(TN_F32);
  b.output(b.op(TN_OP_ADD, b.input(0), b.input(1)));
  ScalarGraph g;
  const auto d = differentiate(*b.finish(), 3, 1, &g);
  const std::vector<CutTarget> targets = {{d[0]}, {d[1]}};
  const auto parts = cut(g, targets, 3, TN_NONE);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].in, std::vector<uint32_t>{2}) << "the seed alone";
  EXPECT_EQ(parts[0].inst.size(), 1u);
}

// ---- conventions ------------------------------------------------------------------------------------------------------

const Real kNaN = std::nanl(""), kInfinity = HUGE_VALL;

TEST(GradientConvention, equal_operands_of_min_and_max_take_half_each) {
  for (uint32_t op : {TN_OP_MIN, TN_OP_MAX}) EXPECT_EQ(binary_gradient(op, 4, 4), (std::vector<Real>{0.5L, 0.5L}));
  EXPECT_EQ(binary_gradient(TN_OP_MAX, 0.0L, -0.0L), (std::vector<Real>{0.5L, 0.5L}));
  EXPECT_EQ(binary_gradient(TN_OP_MAX, 5, 2), (std::vector<Real>{1, 0}));
}

TEST(GradientConvention, a_nan_takes_all_of_min_and_max) {
  for (uint32_t op : {TN_OP_MIN, TN_OP_MAX}) {
    EXPECT_EQ(binary_gradient(op, kNaN, 4), (std::vector<Real>{1, 0}));
    EXPECT_EQ(binary_gradient(op, 4, kNaN), (std::vector<Real>{0, 1})) << kernel::opcode_name(op);
    EXPECT_EQ(binary_gradient(op, kNaN, kNaN), (std::vector<Real>{1, 0}));
  }
}

TEST(GradientConvention, select_gives_exactly_zero_to_the_side_not_taken) {
  ProgramBuilder b(TN_F64);
  b.output(b.op(TN_OP_SELECT, b.op(TN_OP_LT, b.input(0), b.constant(0)), b.input(1), b.input(2)));
  for (Real seed : {kInfinity, kNaN}) EXPECT_EQ(gradient(*b.finish(), {-1, 2, 3}, {seed}, slots_of(b))[2], 0);
}

TEST(GradientConvention, where_of_a_root_is_clean_at_points_with_a_finite_slope) {
  // where(x > 0, sqrt(x), x) at -1 and -4: the root's branch is not taken.
  ProgramBuilder b(TN_F64);
  const Id x = b.input(0);
  b.output(b.op(TN_OP_SELECT, b.op(TN_OP_LT, b.constant(0), x), b.op(TN_OP_SQRT, x), x));
  EXPECT_EQ(gradient(*b.finish(), {16}, {1}, slots_of(b))[0], 0.125L);
}

TEST(GradientConvention, kinks_and_steps_have_slope_zero) {
  EXPECT_EQ(unary_gradient(TN_OP_ABS, 0), 0);
  for (uint32_t op : {TN_OP_SIGN, TN_OP_FLOOR, TN_OP_CEIL, TN_OP_TRUNC, TN_OP_RINT}) EXPECT_EQ(unary_gradient(op, 0.5L), 0);
}

TEST(GradientConvention, root_is_infinite_at_zero) { EXPECT_EQ(unary_gradient(TN_OP_SQRT, 0), kInfinity); }

TEST(GradientConvention, power_at_its_corners) {
  EXPECT_EQ(binary_gradient(TN_OP_POW, 0, 2), (std::vector<Real>{0, 0}));
  EXPECT_EQ(binary_gradient(TN_OP_POW, 0, 1), (std::vector<Real>{1, 0}));
  EXPECT_EQ(binary_gradient(TN_OP_POW, 0, 0), (std::vector<Real>{0, 0}));
  EXPECT_EQ(binary_gradient(TN_OP_POW, -2, 2)[0], -4);
  EXPECT_TRUE(std::isnan(binary_gradient(TN_OP_POW, -2, 2)[1]));
  EXPECT_EQ(binary_gradient(TN_OP_POW, 3, 0)[0], 0);
}

// ---- cutting ------------------------------------------------------------------------------------------------------------

TEST(Cut, splits_a_long_program_and_stays_exact) {
  ProgramBuilder b(TN_F64);
  Id v = b.input(0);
  for (int i = 0; i < 14; ++i) v = b.op(TN_OP_ADD, b.op(TN_OP_TANH, b.op(TN_OP_MUL, v, b.input(1))), b.op(TN_OP_SIN, v));
  b.output(v);
  const tn_program& p = *b.finish();
  ASSERT_LE(p.n_inst, TN_PROGRAM_MAX_INST);
  ScalarGraph g;
  const auto d = differentiate(p, 3, 1, &g);
  ASSERT_GT(cut(g, std::vector<CutTarget>{{d[0]}, {d[1]}}, 3, TN_NONE).size(), 1u);
  expect_finite_differences(p, {0.4L, 0.9L});
}

TEST(Cut, keeps_to_sixteen_inputs_and_four_outputs) {
  ProgramBuilder b(TN_F64);
  Id v = b.input(0);
  for (uint32_t i = 1; i < 16; ++i) v = b.op(TN_OP_MUL, v, b.input(i));
  b.output(v);
  std::vector<Real> x;
  for (int i = 0; i < 16; ++i) x.push_back(0.8L + 0.03L * i);
  expect_finite_differences(*b.finish(), x);  // 16 inputs and the seed are 17 leaves, 16 gradients
}

TEST(Cut, gives_a_program_with_index_an_input_of_the_full_dims) {
  ScalarGraph g;
  const auto at = g.cast(g.add({TN_OP_INDEX, TN_I64, 0}), TN_F32);
  const auto parts = cut(g, std::vector<CutTarget>{{at}}, 3, 2);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].in, std::vector<uint32_t>{2});
}

TEST(Cut, a_target_alone_has_its_own_program) {
  ScalarGraph g;
  const auto x = g.input(0, TN_F32);
  const std::vector<CutTarget> targets = {{g.op(TN_OP_NEG, x)}, {g.op(TN_OP_SIN, x), true}, {g.op(TN_OP_COS, x)}};
  const auto parts = cut(g, targets, 1, TN_NONE);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].out.size() + parts[1].out.size(), 3u);
}

}  // namespace
}  // namespace tenon::ops
