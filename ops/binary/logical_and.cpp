// ops/binary/logical_and.cpp - whether both hold.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_AND, x[0], x[1]); }

constexpr Elementwise kRule{"logical_and", mask(TN_BOOL), 0, body};

std::vector<Case> cases() { return not_differentiable(binary_cases(Fill::Bool, Fill::Bool, 1)); }

}  // namespace

extern const OpDecl op_logical_and{
    .def = elementwise_def(TN_OPID_LOGICAL_AND, 2, &kRule),
    .summary = "Whether both hold.",
    .formula = "y = a && b",
    .semantics = "bool only. Either operand may be absent: then it is push 0.",
    .example = "logical_and bool[2,3] bool[3]",
    .cases = cases,
    .dtypes = mask(TN_BOOL)};

}  // namespace tenon::ops
