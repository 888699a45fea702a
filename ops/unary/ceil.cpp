// ops/unary/ceil.cpp - the least whole number not below x.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_CEIL, x[0]); }

constexpr Elementwise kRule{"ceil", kNumbers, 0, body};

std::vector<Case> cases() { return not_differentiable(unary_cases(Fill::Normal)); }

}  // namespace

extern const OpDecl op_ceil{
    .def = elementwise_def(TN_OPID_CEIL, 1, &kRule),
    .summary = "The least whole number not below x.",
    .formula = "y = ceil(x)",
    .semantics = "Integers stay themselves. ceil(-0.5) is -0. Gradient: zero.",
    .example = "ceil f32[2,3]",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
