// ops/binary/rem.cpp - the remainder with the sign of a.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_REM, x[0], x[1]); }

constexpr Elementwise kRule{"rem", kNumbers, 0, body};

std::vector<Case> cases() { return binary_cases(Fill::Normal, Fill::Positive, 0.75); }

}  // namespace

extern const OpDecl op_rem{
    .def = elementwise_def(TN_OPID_REM, 2, &kRule),
    .summary = "The remainder with the sign of a.",
    .formula = "y = a - trunc(a / b) * b",
    .semantics = "fmod; integers: x rem 0 is 0. Gradient: 1 to a, -trunc(a / b) to b. Either operand may be "
                 "absent: then it is push 0.",
    .example = "rem f32[2,3] f32[3]",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
