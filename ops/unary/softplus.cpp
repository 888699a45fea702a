// ops/unary/softplus.cpp - a smooth positive part.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) {
  const Id zero = p.constant(0), negative = p.op(TN_OP_LT, x[0], zero);
  const Id below = p.op(TN_OP_SELECT, negative, x[0], p.op(TN_OP_NEG, x[0]));  // -|x|, with the slope of the side taken
  return p.op(TN_OP_ADD, p.op(TN_OP_SELECT, negative, zero, x[0]), p.op(TN_OP_LOG1P, p.op(TN_OP_EXP, below)));
}

constexpr Elementwise kRule{"softplus", kFloats, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Normal); }

}  // namespace

extern const OpDecl op_softplus{
    .def = elementwise_def(TN_OPID_SOFTPLUS, 1, &kRule),
    .summary = "A smooth positive part.",
    .formula = "y = log(1 + e^x)",
    .semantics = "No overflow: max(x, 0) + log1p(e^-|x|). -Inf gives 0, +Inf stays.",
    .example = "softplus f32[2,3]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 8};

}  // namespace tenon::ops
