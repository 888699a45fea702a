// ops/unary/sign.cpp - the sign: -1, 0 or 1.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_SIGN, x[0]); }

constexpr Elementwise kRule{"sign", kNumbers, 0, body};

std::vector<Case> cases() { return not_differentiable(unary_cases(Fill::Normal)); }

}  // namespace

extern const OpDecl op_sign{
    .def = elementwise_def(TN_OPID_SIGN, 1, &kRule),
    .summary = "The sign: -1, 0 or 1.",
    .formula = "y = x > 0 ? 1 : x < 0 ? -1 : x",
    .semantics = "Keeps -0. NaN stays NaN. Gradient: zero.",
    .example = "sign f32[2,3]",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
