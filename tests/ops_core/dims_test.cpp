// Arithmetic of shape rules on numbers and on symbols.
#include <gtest/gtest.h>

#include <random>

#include "kernel/dims.h"

namespace tenon::kernel {
namespace {

TEST(ConcreteDims, divides_down_and_keeps_the_divisors_sign) {
  EXPECT_EQ(calc_numbers(TN_DIM_FLOORDIV, -7, 2), -4);
  EXPECT_EQ(calc_numbers(TN_DIM_MOD, -7, 2), 1);
  EXPECT_EQ(calc_numbers(TN_DIM_FLOORDIV, 7, -2), -4);
  EXPECT_EQ(calc_numbers(TN_DIM_MOD, 7, -2), -1);
  EXPECT_EQ(calc_numbers(TN_DIM_FLOORDIV, INT64_MIN, -1), std::nullopt);
}

TEST(ConcreteDims, overflow_and_division_by_zero_stick) {
  for (const auto& [op, a, b] : {std::tuple{TN_DIM_MUL, INT64_MAX, int64_t{2}}, {TN_DIM_ADD, INT64_MAX, int64_t{1}},
                                 {TN_DIM_MOD, int64_t{5}, int64_t{0}}}) {
    ConcreteDims n;
    const tn_dims d = n.table();
    EXPECT_EQ(d.calc(d.ctx, TN_DIM_ADD, 2, 3), 5);
    d.calc(d.ctx, op, a, b);
    d.calc(d.ctx, TN_DIM_ADD, 2, 3);
    tn_diag diag{};
    EXPECT_EQ(n.status(&diag), TN_E_SHAPE);
    EXPECT_EQ(diag.id, 2u << 16 | 4);
  }
}

TEST(ConcreteDims, require_says_no_with_both_numbers) {
  ConcreteDims n;
  const tn_dims d = n.table();
  tn_diag diag{};
  EXPECT_EQ(d.require(d.ctx, TN_DIM_DIVIDES, 3, 12, &diag), TN_OK);
  EXPECT_EQ(d.require(d.ctx, TN_DIM_EQ, 3, 4, &diag), TN_E_SHAPE);
  EXPECT_NE(std::string(diag.msg).find("3 must equal 4"), std::string::npos) << diag.msg;
}

class Symbols : public testing::Test {
 protected:
  SymbolicDims s_;
  int64_t n_ = s_.base(), m_ = s_.base();
  int64_t calc(uint32_t op, int64_t a, int64_t b) { return s_.calc(op, a, b); }
};

TEST_F(Symbols, equal_polynomials_are_one_symbol) {
  const int64_t nm = calc(TN_DIM_MUL, n_, m_);
  EXPECT_EQ(nm, calc(TN_DIM_MUL, m_, n_));
  const int64_t square = calc(TN_DIM_MUL, calc(TN_DIM_ADD, n_, m_), calc(TN_DIM_ADD, n_, m_));
  const int64_t parts = calc(TN_DIM_ADD, calc(TN_DIM_ADD, calc(TN_DIM_MUL, n_, n_), calc(TN_DIM_MUL, 2, nm)), calc(TN_DIM_MUL, m_, m_));
  EXPECT_EQ(square, parts);
  EXPECT_EQ(calc(TN_DIM_SUB, square, parts), 0);
}

TEST_F(Symbols, simplify_to_numbers_and_to_themselves) {
  EXPECT_EQ(calc(TN_DIM_MUL, n_, 0), 0);
  EXPECT_EQ(calc(TN_DIM_MUL, n_, 1), n_);
  EXPECT_EQ(calc(TN_DIM_SUB, calc(TN_DIM_ADD, n_, 5), n_), 5);
  EXPECT_EQ(calc(TN_DIM_FLOORDIV, calc(TN_DIM_MUL, n_, m_), n_), m_);
  EXPECT_EQ(calc(TN_DIM_FLOORDIV, calc(TN_DIM_ADD, calc(TN_DIM_MUL, 4, n_), 3), 4), n_);
  EXPECT_EQ(calc(TN_DIM_MOD, calc(TN_DIM_MUL, n_, 6), 3), 0);
  EXPECT_EQ(calc(TN_DIM_MOD, calc(TN_DIM_ADD, calc(TN_DIM_MUL, n_, 6), 5), 3), 2);
  EXPECT_EQ(calc(TN_DIM_MAX, n_, 1), n_) << "a symbol is 2 or more";
  EXPECT_EQ(calc(TN_DIM_MIN, n_, 2), 2);
}

TEST_F(Symbols, decide_what_follows_from_their_range_and_guard_the_rest) {
  tn_diag d{};
  EXPECT_EQ(s_.require(TN_DIM_LT, 1, n_, &d), TN_OK);
  EXPECT_EQ(s_.require(TN_DIM_EQ, n_, 1, &d), TN_E_SHAPE);
  EXPECT_EQ(s_.require(TN_DIM_EQ, n_, calc(TN_DIM_ADD, n_, 1), &d), TN_E_SHAPE);
  EXPECT_EQ(s_.require(TN_DIM_DIVIDES, n_, calc(TN_DIM_MUL, n_, m_), &d), TN_OK);
  EXPECT_TRUE(s_.guards().empty());
  EXPECT_EQ(s_.require(TN_DIM_EQ, n_, m_, &d), TN_OK);
  EXPECT_EQ(s_.require(TN_DIM_EQ, m_, n_, &d), TN_OK);
  ASSERT_EQ(s_.guards().size(), 1u);
  EXPECT_TRUE(s_.guards_hold({{7, 7}}));
  EXPECT_FALSE(s_.guards_hold({{7, 8}}));
}

TEST_F(Symbols, sizes_of_expressions_are_guarded_but_not_those_known_after_running) {
  tn_type t{};
  t.rank = 3;
  t.dim[0] = n_, t.dim[1] = calc(TN_DIM_SUB, m_, 1), t.dim[2] = s_.fresh(0, 9);
  EXPECT_EQ(s_.guard_sizes(t, nullptr), TN_OK);
  ASSERT_EQ(s_.guards().size(), 1u);
  EXPECT_FALSE(s_.guards_hold({{2, 2, 0}}));
  EXPECT_TRUE(s_.guards_hold({{2, 3, 0}}));
}

TEST_F(Symbols, overflow_of_factors_and_division_by_zero_stick) {
  calc(TN_DIM_MUL, calc(TN_DIM_MUL, n_, INT64_MAX), 2);
  EXPECT_EQ(s_.status(), TN_E_SHAPE);
  SymbolicDims other;
  other.calc(TN_DIM_MOD, other.base(), 0);
  EXPECT_EQ(other.status(), TN_E_SHAPE);
}

TEST_F(Symbols, evaluation_fails_without_values_and_on_overflow) {
  int64_t v = 0;
  const int64_t nm = calc(TN_DIM_MUL, n_, m_);
  EXPECT_FALSE(s_.evaluate(nm, {{3}}, &v));
  EXPECT_FALSE(s_.evaluate(nm, {{INT64_MAX, 2}}, &v));
  EXPECT_FALSE(s_.evaluate(TN_SYM(999), {{1, 2}}, &v));
  EXPECT_TRUE(s_.evaluate(nm, {{3, 5}}, &v));
  EXPECT_EQ(v, 15);
}

// Random expressions: symbols then numbers equals numbers all along, and ranges never decide wrongly.
TEST(SymbolicDims, agree_with_numbers_on_random_expressions) {
  std::mt19937 random(1);
  const auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 3000; ++round) {
    SymbolicDims s;
    const std::vector<int64_t> values = {2 + pick(9), 2 + pick(9), 2 + pick(9)};
    std::vector<int64_t> symbolic = {s.base(), s.base(), s.base(), 0, 1, 2 + pick(5), -pick(4)};
    std::vector<int64_t> number = {values[0], values[1], values[2], 0, 1, symbolic[5], symbolic[6]};
    for (int step = 0; step < 8; ++step) {
      const uint32_t op = static_cast<uint32_t>(pick(7));
      const size_t a = static_cast<size_t>(pick(static_cast<int64_t>(number.size()))), b = static_cast<size_t>(pick(static_cast<int64_t>(number.size())));
      const auto expected = calc_numbers(op, number[a], number[b]);
      if (!expected || std::abs(*expected) > 1000000) continue;
      if ((op == TN_DIM_FLOORDIV || op == TN_DIM_MOD) && symbolic[b] == 0) continue;
      symbolic.push_back(s.calc(op, symbolic[a], symbolic[b]));
      number.push_back(*expected);
      int64_t got = 0;
      ASSERT_EQ(s.status(), TN_OK);
      ASSERT_TRUE(s.evaluate(symbolic.back(), values, &got));
      ASSERT_EQ(got, *expected) << "round " << round << " op " << op;
      for (uint32_t relation : {TN_DIM_EQ, TN_DIM_LE, TN_DIM_LT, TN_DIM_DIVIDES}) {
        const size_t before = s.guards().size();
        const bool ok = s.require(relation, symbolic[a], symbolic.back(), nullptr) == TN_OK;
        const bool decided = !ok || s.guards().size() == before;
        if (!ok) {
          ASSERT_FALSE(holds(relation, number[a], number.back())) << "round " << round;
        }
        if (ok && decided && s.guards_hold(values)) {
          ASSERT_TRUE(holds(relation, number[a], number.back())) << "round " << round;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::kernel
