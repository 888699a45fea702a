// ops/unary/neg.cpp - the opposite.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_NEG, x[0]); }

constexpr Elementwise kRule{"neg", kNumbers, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Normal); }

}  // namespace

extern const OpDecl op_neg{
    .def = elementwise_def(TN_OPID_NEG, 1, &kRule),
    .summary = "The opposite.",
    .formula = "y = -x",
    .semantics = "Flips the sign bit, also of 0 and NaN. Integers wrap: the least integer stays.",
    .example = "neg f32[2,3]",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
