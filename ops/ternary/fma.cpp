// ops/ternary/fma.cpp - a product and a sum, rounded once.
#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

// Integers need no care for rounding, and the opcode is for floats alone.
Id body(ProgramBuilder& p, const Id* x, const tn_op&) {
  if (is_float(p.compute())) return p.op(TN_OP_FMA, x[0], x[1], x[2]);
  return p.op(TN_OP_ADD, p.op(TN_OP_MUL, x[0], x[1]), x[2]);
}

constexpr Elementwise kRule{"fma", kNumbers, 0, body};

std::vector<Case> cases() { return ternary_cases({}, Fill::Normal, Fill::Normal); }

}  // namespace

extern const OpDecl op_fma{
    .def = elementwise_def(TN_OPID_FMA, 3, &kRule),
    .summary = "A product and a sum, rounded once.",
    .formula = "y = a * b + c",
    .semantics = "One rounding for f32 and f64; f16 and bf16 round the f32 result once more. Integers wrap.",
    .example = "fma f32[2,3] f32[2,3] f32[2,3]",
    .cases = cases,
    .dtypes = kNumbers,
    .ulp_f32 = 1};

}  // namespace tenon::ops
