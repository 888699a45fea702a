// ops/unary/round.cpp - the nearest whole number, halves to even.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_RINT, x[0]); }

constexpr Elementwise kRule{"round", kNumbers, 0, body};

std::vector<Case> cases() { return not_differentiable(unary_cases(Fill::Normal)); }

}  // namespace

extern const OpDecl op_round{
    .def = elementwise_def(TN_OPID_ROUND, 1, &kRule),
    .summary = "The nearest whole number, halves to even.",
    .formula = "y = rint(x)",
    .semantics = "2.5 gives 2, -0.5 gives -0. Integers stay themselves. Gradient: zero.",
    .example = "round f32[2,3]",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
