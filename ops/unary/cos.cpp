// ops/unary/cos.cpp - the cosine of an angle in radians.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_COS, x[0]); }

constexpr Elementwise kRule{"cos", kFloats, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Normal); }

}  // namespace

extern const OpDecl op_cos{
    .def = elementwise_def(TN_OPID_COS, 1, &kRule),
    .summary = "The cosine of an angle in radians.",
    .formula = "y = cos(x)",
    .semantics = "Any |x| is reduced exactly. An infinity gives NaN.",
    .example = "cos f32[2,3]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 5};

}  // namespace tenon::ops
