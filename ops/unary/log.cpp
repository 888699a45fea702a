// ops/unary/log.cpp - the natural logarithm.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_LOG, x[0]); }

constexpr Elementwise kRule{"log", kFloats, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Positive); }

}  // namespace

extern const OpDecl op_log{
    .def = elementwise_def(TN_OPID_LOG, 1, &kRule),
    .summary = "The natural logarithm.",
    .formula = "y = log(x)",
    .semantics = "0 gives -Inf, x < 0 gives NaN.",
    .example = "log f32[2,3]",
    .cases = cases,
    .dtypes = kFloats};

}  // namespace tenon::ops
