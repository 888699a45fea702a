// ops/reduction/arg.h - argmax and argmin: one axis, an index as the result.
#pragma once
#include "ops/reduction/reduction.h"

namespace tenon::ops {

tn_status arg_infer(void* name, const tn_op*, const tn_dims*, tn_type* out, tn_diag*);
tn_status arg_no_gradient(void*, tn_builder*, const tn_rule*, tn_diag*);

inline constexpr tn_attr_def kArgAttrs[] = {attr_def_i64(TN_KEY_AXIS, "axis", -1), attr_def_i64(TN_KEY_KEEPDIMS, "keepdims", 0)};

constexpr tn_op_def arg_def(uint32_t op_id, const char* name, tn_rule_fn expand) {
  tn_op_def d{};
  d.size = sizeof(tn_op_def);
  d.op_id = op_id;
  d.version = 1;
  d.n_in = d.n_out = 1;
  d.n_attr_defs = 2;
  d.name = name;
  d.attr_defs = kArgAttrs;
  d.infer = arg_infer;
  d.expand = expand;
  d.vjp = arg_no_gradient;
  d.cost = reduction_cost;
  d.ctx = const_cast<char*>(name);
  return d;
}

template <int64_t monoid>
tn_status arg_expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const int64_t axis = normalise_axis(attr_i64(e.self(), TN_KEY_AXIS, -1), e.self().type[0].rank);
  e.result(0, emit_reduce(e, {e.in(0)}, {monoid, {axis}, keepdims_of(e.self())}));
  return e.status();
}

}  // namespace tenon::ops
