// ops/unary/trunc.cpp - the whole part, toward zero.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_TRUNC, x[0]); }

constexpr Elementwise kRule{"trunc", kNumbers, 0, body};

std::vector<Case> cases() { return not_differentiable(unary_cases(Fill::Normal)); }

}  // namespace

extern const OpDecl op_trunc{
    .def = elementwise_def(TN_OPID_TRUNC, 1, &kRule),
    .summary = "The whole part, toward zero.",
    .formula = "y = trunc(x)",
    .semantics = "Integers stay themselves. trunc(-0.5) is -0. Gradient: zero.",
    .example = "trunc f32[2,3]",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
