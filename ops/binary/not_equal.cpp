// ops/binary/not_equal.cpp - whether both differ.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

// Comparison opcodes are for numbers; for bool the bit operations say the same.
Id body(ProgramBuilder& p, const Id* x, const tn_op&) {
  if (p.compute() == TN_BOOL) return p.op(TN_OP_XOR, x[0], x[1]);
  return p.op(TN_OP_NE, x[0], x[1]);
}

constexpr Elementwise kRule{"not_equal", kAllTypes, TN_BOOL, body};

std::vector<Case> cases() { return not_differentiable(binary_cases(Fill::Normal, Fill::Normal, 0.75)); }

}  // namespace

extern const OpDecl op_not_equal{
    .def = elementwise_def(TN_OPID_NOT_EQUAL, 2, &kRule),
    .summary = "Whether both differ.",
    .formula = "y = a != b",
    .semantics = "bool. A NaN differs from all; -0 equals +0. Takes bool too. Either operand may be absent: "
                 "then it is push 0.",
    .example = "not_equal f32[2,3] f32[3]",
    .cases = cases,
    .dtypes = kAllTypes};

}  // namespace tenon::ops
