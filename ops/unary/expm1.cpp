// ops/unary/expm1.cpp - the exponential less one, exact near 0.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_EXPM1, x[0]); }

constexpr Elementwise kRule{"expm1", kFloats, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Normal); }

}  // namespace

extern const OpDecl op_expm1{
    .def = elementwise_def(TN_OPID_EXPM1, 1, &kRule),
    .summary = "The exponential less one, exact near 0.",
    .formula = "y = e^x - 1",
    .semantics = "Keeps 0 and its sign. -Inf gives -1.",
    .example = "expm1 f32[2,3]",
    .cases = cases,
    .dtypes = kFloats};

}  // namespace tenon::ops
