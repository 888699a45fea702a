// ops/binary/sub.cpp - the difference.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_SUB, x[0], x[1]); }

constexpr Elementwise kRule{"sub", kNumbers, 0, body};

std::vector<Case> cases() { return binary_cases(Fill::Normal, Fill::Normal, 0.75); }

}  // namespace

extern const OpDecl op_sub{
    .def = elementwise_def(TN_OPID_SUB, 2, &kRule),
    .summary = "The difference.",
    .formula = "y = a - b",
    .semantics = "Integers wrap. Either operand may be absent: then it is push 0.",
    .example = "sub f32[2,3] f32[3]",
    .cases = cases,
    .dtypes = kNumbers,
    .ulp_f32 = 1};

}  // namespace tenon::ops
