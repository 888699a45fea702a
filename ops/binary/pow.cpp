// ops/binary/pow.cpp - the power.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_POW, x[0], x[1]); }

constexpr Elementwise kRule{"pow", kNumbers, 0, body};

std::vector<Case> cases() { return binary_cases(Fill::Positive, Fill::Normal, 0.75); }

}  // namespace

extern const OpDecl op_pow{
    .def = elementwise_def(TN_OPID_POW, 2, &kRule),
    .summary = "The power.",
    .formula = "y = a ^ b",
    .semantics = "C pow. Integers wrap; a negative exponent gives 0, but for bases 1 and -1. Gradient to a: "
                 "0 where b is 0; to b: 0 where y is 0 and at 0^0, NaN where a < 0. Either operand may be "
                 "absent: then it is push 0.",
    .example = "pow f32[2,3] f32[3]",
    .cases = cases,
    .dtypes = kNumbers,
    .ulp_f32 = 17};

}  // namespace tenon::ops
