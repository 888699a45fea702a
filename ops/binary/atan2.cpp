// ops/binary/atan2.cpp - the angle of the point (b, a).
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_ATAN2, x[0], x[1]); }

constexpr Elementwise kRule{"atan2", kFloats, 0, body};

std::vector<Case> cases() { return binary_cases(Fill::Normal, Fill::Positive, 0.75); }

}  // namespace

extern const OpDecl op_atan2{
    .def = elementwise_def(TN_OPID_ATAN2, 2, &kRule),
    .summary = "The angle of the point (b, a).",
    .formula = "y = atan2(a, b)",
    .semantics = "C atan2, with its cases of zeros and infinities. Either operand may be absent: then it is "
                 "push 0.",
    .example = "atan2 f32[2,3] f32[3]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 7};

}  // namespace tenon::ops
