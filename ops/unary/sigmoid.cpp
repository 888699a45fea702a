// ops/unary/sigmoid.cpp - the logistic function.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return sigmoid_of(p, x[0]); }

Id gradient(ProgramBuilder& p, Id y, Id g) {
  return p.op(TN_OP_MUL, g, p.op(TN_OP_MUL, y, p.op(TN_OP_SUB, p.constant(1), y)));
}

constexpr Elementwise kRule{"sigmoid", kFloats, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Normal); }

}  // namespace

extern const OpDecl op_sigmoid{
    .def = elementwise_def(TN_OPID_SIGMOID, 1, &kRule, vjp_from_output<gradient>),
    .summary = "The logistic function.",
    .formula = "y = 1 / (1 + e^-x)",
    .semantics = "No overflow for any x: -Inf gives 0, +Inf gives 1.",
    .example = "sigmoid f32[2,3]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 8};

}  // namespace tenon::ops
