// ops/binary/minimum.cpp - the smaller.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_MIN, x[0], x[1]); }

constexpr Elementwise kRule{"minimum", kNumbers, 0, body};

std::vector<Case> cases() { return binary_cases(Fill::Normal, Fill::Normal, 0.75); }

}  // namespace

extern const OpDecl op_minimum{
    .def = elementwise_def(TN_OPID_MINIMUM, 2, &kRule),
    .summary = "The smaller.",
    .formula = "y = min(a, b)",
    .semantics = "A NaN wins; -0 is below +0. Equal operands share the gradient in halves; a NaN takes all "
                 "of it. Either operand may be absent: then it is push 0.",
    .example = "minimum f32[2,3] f32[3]",
    .cases = cases,
    .dtypes = kNumbers,
    .ulp_f32 = 1};

}  // namespace tenon::ops
