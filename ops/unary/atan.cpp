// ops/unary/atan.cpp - the angle whose tangent is x.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_ATAN, x[0]); }

constexpr Elementwise kRule{"atan", kFloats, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Normal); }

}  // namespace

extern const OpDecl op_atan{
    .def = elementwise_def(TN_OPID_ATAN, 1, &kRule),
    .summary = "The angle whose tangent is x.",
    .formula = "y = atan(x)",
    .semantics = "Infinities give +-pi/2.",
    .example = "atan f32[2,3]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 5};

}  // namespace tenon::ops
