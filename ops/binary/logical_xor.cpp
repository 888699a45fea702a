// ops/binary/logical_xor.cpp - whether exactly one holds.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_XOR, x[0], x[1]); }

constexpr Elementwise kRule{"logical_xor", mask(TN_BOOL), 0, body};

std::vector<Case> cases() { return not_differentiable(binary_cases(Fill::Bool, Fill::Bool, 1)); }

}  // namespace

extern const OpDecl op_logical_xor{
    .def = elementwise_def(TN_OPID_LOGICAL_XOR, 2, &kRule),
    .summary = "Whether exactly one holds.",
    .formula = "y = a != b",
    .semantics = "bool only. Either operand may be absent: then it is push 0.",
    .example = "logical_xor bool[2,3] bool[3]",
    .cases = cases,
    .dtypes = mask(TN_BOOL)};

}  // namespace tenon::ops
