// ops/binary/div.cpp - the quotient.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_DIV, x[0], x[1]); }

constexpr Elementwise kRule{"div", kNumbers, 0, body};

std::vector<Case> cases() { return binary_cases(Fill::Normal, Fill::Positive, 0.75); }

}  // namespace

extern const OpDecl op_div{
    .def = elementwise_def(TN_OPID_DIV, 2, &kRule),
    .summary = "The quotient.",
    .formula = "y = a / b",
    .semantics = "Integers: toward zero, x / 0 is 0, least / -1 is least. Either operand may be absent: "
                 "then it is push 0.",
    .example = "div f32[2,3] f32[3]",
    .cases = cases,
    .dtypes = kNumbers,
    .ulp_f32 = 3};

}  // namespace tenon::ops
