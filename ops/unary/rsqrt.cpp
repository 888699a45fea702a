// ops/unary/rsqrt.cpp - one over the square root.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_RSQRT, x[0]); }

constexpr Elementwise kRule{"rsqrt", kFloats, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Positive); }

}  // namespace

extern const OpDecl op_rsqrt{
    .def = elementwise_def(TN_OPID_RSQRT, 1, &kRule),
    .summary = "One over the square root.",
    .formula = "y = 1 / sqrt(x)",
    .semantics = "+0 gives +Inf, -0 gives -Inf, x < 0 gives NaN, +Inf gives 0.",
    .example = "rsqrt f32[2,3]",
    .cases = cases,
    .dtypes = kFloats};

}  // namespace tenon::ops
