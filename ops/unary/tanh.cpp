// ops/unary/tanh.cpp - the hyperbolic tangent.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_TANH, x[0]); }

// (1 - y) (1 + y) rather than 1 - y y: the first factor is exact where y is near 1.
Id gradient(ProgramBuilder& p, Id y, Id g) {
  const Id one = p.constant(1);
  return p.op(TN_OP_MUL, g, p.op(TN_OP_MUL, p.op(TN_OP_SUB, one, y), p.op(TN_OP_ADD, one, y)));
}

constexpr Elementwise kRule{"tanh", kFloats, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Normal); }

}  // namespace

extern const OpDecl op_tanh{
    .def = elementwise_def(TN_OPID_TANH, 1, &kRule, vjp_from_output<gradient>),
    .summary = "The hyperbolic tangent.",
    .formula = "y = tanh(x)",
    .semantics = "Reaches +-1 for large |x|, keeps 0 and its sign.",
    .example = "tanh f32[2,3]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 6};

}  // namespace tenon::ops
