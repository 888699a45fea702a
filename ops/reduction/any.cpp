// ops/reduction/any.cpp - whether some element is not 0.
#include "ops/reduction/reduction.h"

namespace tenon::ops {
namespace {

constexpr Reduction kRule{"any", kAllTypes, TN_BOOL};

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const uint32_t dtype = e.self().type[0].dtype;
  ProgramBuilder truth(dtype);
  truth.output(truth.input(0), TN_BOOL);
  ReduceNode node{TN_MONOID_OR, resolved_axes(e.self()), keepdims_of(e.self())};
  if (dtype != TN_BOOL) node.pre = truth.finish();
  e.result(0, emit_reduce(e, {e.in(0)}, node));
  return e.status();
}

std::vector<Case> cases() { return not_differentiable(reduction_cases(Fill::Bool, true)); }

}  // namespace

extern const OpDecl op_any{
    .def = reduction_def(TN_OPID_ANY, &kRule, expand),
    .summary = "Whether some element is not 0.",
    .formula = "y = some x != 0",
    .semantics = "bool. A NaN is not 0. No elements: false. Attribute axes: absent = all, an empty list = "
                 "none; negative axes count from the end.",
    .example = "any bool[2,3] --axes 1",
    .cases = cases,
    .dtypes = kAllTypes};

}  // namespace tenon::ops
