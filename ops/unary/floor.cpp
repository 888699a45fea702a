// ops/unary/floor.cpp - the largest whole number not above x.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_FLOOR, x[0]); }

constexpr Elementwise kRule{"floor", kNumbers, 0, body};

std::vector<Case> cases() { return not_differentiable(unary_cases(Fill::Normal)); }

}  // namespace

extern const OpDecl op_floor{
    .def = elementwise_def(TN_OPID_FLOOR, 1, &kRule),
    .summary = "The largest whole number not above x.",
    .formula = "y = floor(x)",
    .semantics = "Integers stay themselves. Keeps -0, infinities and NaN. Gradient: zero.",
    .example = "floor f32[2,3]",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
