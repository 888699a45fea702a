// ops/binary/less.cpp - whether a is below b.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_LT, x[0], x[1]); }

constexpr Elementwise kRule{"less", kNumbers, TN_BOOL, body};

std::vector<Case> cases() { return not_differentiable(binary_cases(Fill::Normal, Fill::Normal, 0.75)); }

}  // namespace

extern const OpDecl op_less{
    .def = elementwise_def(TN_OPID_LESS, 2, &kRule),
    .summary = "Whether a is below b.",
    .formula = "y = a < b",
    .semantics = "bool. A NaN gives false. Either operand may be absent: then it is push 0.",
    .example = "less f32[2,3] f32[3]",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
