// ops/unary/logical_not.cpp - logical negation.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_NOT, x[0]); }

constexpr Elementwise kRule{"logical_not", mask(TN_BOOL), 0, body};

std::vector<Case> cases() { return not_differentiable(unary_cases(Fill::Bool)); }

}  // namespace

extern const OpDecl op_logical_not{
    .def = elementwise_def(TN_OPID_LOGICAL_NOT, 1, &kRule),
    .summary = "Logical negation.",
    .formula = "y = !x",
    .semantics = "bool only.",
    .example = "logical_not bool[4]",
    .cases = cases,
    .dtypes = mask(TN_BOOL)};

}  // namespace tenon::ops
