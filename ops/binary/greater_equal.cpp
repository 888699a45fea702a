// ops/binary/greater_equal.cpp - whether a is at least b.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_LE, x[1], x[0]); }

constexpr Elementwise kRule{"greater_equal", kNumbers, TN_BOOL, body};

std::vector<Case> cases() { return not_differentiable(binary_cases(Fill::Normal, Fill::Normal, 0.75)); }

}  // namespace

extern const OpDecl op_greater_equal{
    .def = elementwise_def(TN_OPID_GREATER_EQUAL, 2, &kRule),
    .summary = "Whether a is at least b.",
    .formula = "y = a >= b",
    .semantics = "bool. A NaN gives false. Either operand may be absent: then it is push 0.",
    .example = "greater_equal f32[2,3] f32[3]",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
