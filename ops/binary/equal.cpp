// ops/binary/equal.cpp - whether both are equal.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

// Comparison opcodes are for numbers; for bool the bit operations say the same.
Id body(ProgramBuilder& p, const Id* x, const tn_op&) {
  if (p.compute() == TN_BOOL) return p.op(TN_OP_NOT, p.op(TN_OP_XOR, x[0], x[1]));
  return p.op(TN_OP_EQ, x[0], x[1]);
}

constexpr Elementwise kRule{"equal", kAllTypes, TN_BOOL, body};

std::vector<Case> cases() { return not_differentiable(binary_cases(Fill::Normal, Fill::Normal, 0.75)); }

}  // namespace

extern const OpDecl op_equal{
    .def = elementwise_def(TN_OPID_EQUAL, 2, &kRule),
    .summary = "Whether both are equal.",
    .formula = "y = a == b",
    .semantics = "bool. A NaN equals nothing; -0 equals +0. Takes bool too. Either operand may be absent: "
                 "then it is push 0.",
    .example = "equal f32[2,3] f32[3]",
    .cases = cases,
    .dtypes = kAllTypes};

}  // namespace tenon::ops
