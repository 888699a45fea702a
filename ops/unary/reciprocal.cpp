// ops/unary/reciprocal.cpp - one over x.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_DIV, p.constant(1), x[0]); }

constexpr Elementwise kRule{"reciprocal", kFloats, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Positive); }

}  // namespace

extern const OpDecl op_reciprocal{
    .def = elementwise_def(TN_OPID_RECIPROCAL, 1, &kRule),
    .summary = "One over x.",
    .formula = "y = 1 / x",
    .semantics = "+-0 gives +-Inf. Floats only: the whole part of 1 / n is rarely wanted.",
    .example = "reciprocal f32[2,3]",
    .cases = cases,
    .dtypes = kFloats};

}  // namespace tenon::ops
