// ops/unary/relu.cpp - the positive part.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) {
  const Id zero = p.constant(0);
  return p.op(TN_OP_SELECT, p.op(TN_OP_LE, x[0], zero), zero, x[0]);
}

Id gradient(ProgramBuilder& p, Id y, Id g) {
  const Id zero = p.constant(0);
  return p.op(TN_OP_SELECT, p.op(TN_OP_LE, y, zero), zero, g);
}

constexpr Elementwise kRule{"relu", kNumbers, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Spaced); }

}  // namespace

extern const OpDecl op_relu{
    .def = elementwise_def(TN_OPID_RELU, 1, &kRule, vjp_from_output<gradient>),
    .summary = "The positive part.",
    .formula = "y = x > 0 ? x : 0",
    .semantics = "NaN stays NaN, -0 gives +0. Gradient at 0: 0.",
    .example = "relu f32[2,3]",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
