// ops/unary/erf.cpp - the error function.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_ERF, x[0]); }

constexpr Elementwise kRule{"erf", kFloats, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Normal); }

}  // namespace

extern const OpDecl op_erf{
    .def = elementwise_def(TN_OPID_ERF, 1, &kRule),
    .summary = "The error function.",
    .formula = "y = 2/sqrt(pi) * integral of e^(-t^2) from 0 to x",
    .semantics = "Reaches +-1 for large |x|.",
    .example = "erf f32[2,3]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 9};

}  // namespace tenon::ops
