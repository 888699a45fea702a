// ops/unary/leaky_relu.cpp - x, or a fraction of it below 0.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) {
  return p.op(TN_OP_SELECT, p.op(TN_OP_LT, p.constant(0), x[0]), x[0], p.op(TN_OP_MUL, x[0], p.slot(0)));
}

constexpr Elementwise kRule{"leaky_relu", kFloats, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Spaced, {0.1}); }

}  // namespace

extern const OpDecl op_leaky_relu{
    .def = elementwise_def(TN_OPID_LEAKY_RELU, 1, &kRule),
    .summary = "x, or a fraction of it below 0.",
    .formula = "y = x > 0 ? x : slope * x",
    .semantics = "slope is push 0. NaN stays NaN. Gradient at 0: slope.",
    .example = "leaky_relu f32[2,3]",
    .cases = cases,
    .dtypes = kFloats};

}  // namespace tenon::ops
