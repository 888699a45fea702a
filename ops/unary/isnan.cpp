// ops/unary/isnan.cpp - whether x is not a number.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_ISNAN, x[0]); }

constexpr Elementwise kRule{"isnan", kNumbers, TN_BOOL, body};

std::vector<Case> cases() { return not_differentiable(unary_cases(Fill::Normal)); }

}  // namespace

extern const OpDecl op_isnan{
    .def = elementwise_def(TN_OPID_ISNAN, 1, &kRule),
    .summary = "Whether x is not a number.",
    .formula = "y = x != x",
    .semantics = "bool. Integers give false.",
    .example = "isnan f32[2,3]",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
