// ops/binary/greater.cpp - whether a is above b.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_LT, x[1], x[0]); }

constexpr Elementwise kRule{"greater", kNumbers, TN_BOOL, body};

std::vector<Case> cases() { return not_differentiable(binary_cases(Fill::Normal, Fill::Normal, 0.75)); }

}  // namespace

extern const OpDecl op_greater{
    .def = elementwise_def(TN_OPID_GREATER, 2, &kRule),
    .summary = "Whether a is above b.",
    .formula = "y = a > b",
    .semantics = "bool. A NaN gives false. Either operand may be absent: then it is push 0.",
    .example = "greater f32[2,3] f32[3]",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
