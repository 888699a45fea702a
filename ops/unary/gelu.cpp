// ops/unary/gelu.cpp - gaussian error linear unit.
#include <cmath>
#include <numbers>

#include "ops/elementwise.h"

namespace tenon::ops {
namespace {

using Id = ProgramBuilder::Id;

// 1 + erf(x / sqrt 2), or its tanh form.
Id bell(ProgramBuilder& p, Id x, bool tanh_form) {
  const Id one = p.constant(1);
  if (!tanh_form) return p.op(TN_OP_ADD, one, p.op(TN_OP_ERF, p.op(TN_OP_MUL, x, p.constant(std::numbers::sqrt2 / 2))));
  const Id cube = p.op(TN_OP_MUL, p.op(TN_OP_MUL, x, x), x);
  const Id inner = p.op(TN_OP_ADD, x, p.op(TN_OP_MUL, cube, p.constant(0.044715)));
  return p.op(TN_OP_ADD, one, p.op(TN_OP_TANH, p.op(TN_OP_MUL, inner, p.constant(std::sqrt(2 / std::numbers::pi)))));
}

Id body(ProgramBuilder& p, const Id* x, const tn_op& op) {
  const Id half = p.op(TN_OP_MUL, x[0], p.constant(0.5));
  return p.op(TN_OP_MUL, half, bell(p, x[0], attr_i64(op, TN_KEY_MODE, 0) == 1));
}

constexpr Elementwise kRule{"gelu", kFloats, 0, body};
constexpr tn_attr_def kAttrs[] = {attr_def_i64(TN_KEY_MODE, "mode", 0)};

std::vector<Case> cases() {
  std::vector<Case> list = unary_cases(Fill::Normal);
  for (Case c : unary_cases(Fill::Normal)) {
    c.attrs = {case_i64(TN_KEY_MODE, 1)};
    list.push_back(c);
  }
  return list;
}

}  // namespace

extern const OpDecl op_gelu{
    .def = elementwise_def(TN_OPID_GELU, 1, &kRule, nullptr, kAttrs, 1),
    .summary = "Gaussian error linear unit.",
    .formula = "y = x/2 (1 + erf(x / sqrt 2)), or with mode 1 x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))",
    .semantics = "-Inf gives NaN (-Inf * 0). Where x is far below 0 the result is absolutely, not "
                 "relatively, exact.",
    .example = "gelu f32[2,3]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 16};

}  // namespace tenon::ops
