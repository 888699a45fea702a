// ops/unary/sqrt.cpp - the square root.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_SQRT, x[0]); }

Id gradient(ProgramBuilder& p, Id y, Id g) {
  return p.op(TN_OP_DIV, p.op(TN_OP_MUL, g, p.constant(0.5)), y);
}

constexpr Elementwise kRule{"sqrt", kFloats, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Positive); }

}  // namespace

extern const OpDecl op_sqrt{
    .def = elementwise_def(TN_OPID_SQRT, 1, &kRule, vjp_from_output<gradient>),
    .summary = "The square root.",
    .formula = "y = sqrt(x)",
    .semantics = "x < 0 gives NaN, -0 gives -0. Gradient at 0: infinite, as seed / 0 is.",
    .example = "sqrt f32[2,3]",
    .cases = cases,
    .dtypes = kFloats};

}  // namespace tenon::ops
