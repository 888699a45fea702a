// ops/unary/clamp.cpp - x held between two bounds.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) {
  const Id low = p.slot(0), high = p.slot(1);
  const Id raised = p.op(TN_OP_SELECT, p.op(TN_OP_LT, x[0], low), low, x[0]);
  return p.op(TN_OP_SELECT, p.op(TN_OP_LT, high, raised), high, raised);
}

constexpr Elementwise kRule{"clamp", kNumbers, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Spaced, {-0.53, 0.63}); }

}  // namespace

extern const OpDecl op_clamp{
    .def = elementwise_def(TN_OPID_CLAMP, 1, &kRule),
    .summary = "x held between two bounds.",
    .formula = "y = x < low ? low : x > high ? high : x",
    .semantics = "low is push 0, high push 1. NaN stays NaN; low > high gives high. Gradient: 1 from low to "
                 "high, both included, else 0.",
    .example = "clamp f32[2,3]",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
