// ops/unary/square.cpp - the square.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_MUL, x[0], x[0]); }

constexpr Elementwise kRule{"square", kNumbers, 0, body};

std::vector<Case> cases() { return unary_cases(Fill::Normal); }

}  // namespace

extern const OpDecl op_square{
    .def = elementwise_def(TN_OPID_SQUARE, 1, &kRule),
    .summary = "The square.",
    .formula = "y = x * x",
    .semantics = "Integers wrap.",
    .example = "square f32[2,3]",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
