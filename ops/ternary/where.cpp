// ops/ternary/where.cpp - one of two values, by a condition.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_SELECT, x[0], x[1], x[2]); }

constexpr Elementwise kRule{"where", kAllTypes, 0, body, true};

std::vector<Case> cases() {
  CaseOperand condition;
  condition.fill = Fill::Bool;
  condition.dtype = TN_BOOL;
  return ternary_cases(condition, Fill::Normal, Fill::Normal);
}

}  // namespace

extern const OpDecl op_where{
    .def = elementwise_def(TN_OPID_WHERE, 3, &kRule),
    .summary = "One of two values, by a condition.",
    .formula = "y = condition ? a : b",
    .semantics = "The condition is bool. The value not taken has no effect, and its gradient is exactly 0 "
                 "whatever the seed is, infinite or NaN included.",
    .example = "where bool[2,3] f32[2,3] f32[2,3]",
    .cases = cases,
    .dtypes = kAllTypes,
    .ulp_f32 = 1};

}  // namespace tenon::ops
