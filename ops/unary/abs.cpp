// ops/unary/abs.cpp - the absolute value.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_ABS, x[0]); }

constexpr Elementwise kRule{"abs", kNumbers, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Spaced); }

}  // namespace

extern const OpDecl op_abs{
    .def = elementwise_def(TN_OPID_ABS, 1, &kRule),
    .summary = "The absolute value.",
    .formula = "y = |x|",
    .semantics = "The least integer stays itself. Gradient at 0: 0.",
    .example = "abs f32[2,3]",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
