// ops/unary/log1p.cpp - the logarithm of one more than x, exact near 0.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_LOG1P, x[0]); }

constexpr Elementwise kRule{"log1p", kFloats, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Unit); }

}  // namespace

extern const OpDecl op_log1p{
    .def = elementwise_def(TN_OPID_LOG1P, 1, &kRule),
    .summary = "The logarithm of one more than x, exact near 0.",
    .formula = "y = log(1 + x)",
    .semantics = "Keeps 0 and its sign. -1 gives -Inf, x < -1 gives NaN.",
    .example = "log1p f32[2,3]",
    .cases = cases,
    .dtypes = kFloats};

}  // namespace tenon::ops
