// ops/unary/exp.cpp - the exponential.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_EXP, x[0]); }

Id gradient(ProgramBuilder& p, Id y, Id g) { return p.op(TN_OP_MUL, g, y); }

constexpr Elementwise kRule{"exp", kFloats, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Normal); }

}  // namespace

extern const OpDecl op_exp{
    .def = elementwise_def(TN_OPID_EXP, 1, &kRule, vjp_from_output<gradient>),
    .summary = "The exponential.",
    .formula = "y = e^x",
    .semantics = "-Inf gives 0, a large x gives +Inf.",
    .example = "exp f32[2,3]",
    .cases = cases,
    .dtypes = kFloats};

}  // namespace tenon::ops
