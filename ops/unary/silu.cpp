// ops/unary/silu.cpp - x times its sigmoid (swish).
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_MUL, x[0], sigmoid_of(p, x[0])); }

constexpr Elementwise kRule{"silu", kFloats, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Normal); }

}  // namespace

extern const OpDecl op_silu{
    .def = elementwise_def(TN_OPID_SILU, 1, &kRule),
    .summary = "x times its sigmoid (swish).",
    .formula = "y = x / (1 + e^-x)",
    .semantics = "+Inf stays; -Inf gives NaN (-Inf * 0).",
    .example = "silu f32[2,3]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 9};

}  // namespace tenon::ops
