// ops/reduction/reduction.h - what the named reductions share: axes that may be absent or negative, and keepdims.
#pragma once
#include "ops/cases.h"
#include "ops/declare.h"
#include "ops/emit.h"

namespace tenon::ops {

struct Reduction {
  const char* name;
  uint64_t dtypes;   // of the operand
  uint32_t result;   // dtype of the output; 0 = the operand's
};

// Sorted axes from 0, all when the attribute is absent. TN-SHAPE-005, TN-SHAPE-006.
tn_status resolve_axes(const char* name, const tn_op& op, std::vector<int64_t>* axes, tn_diag* diag);
// For rules that run after infer has accepted the op.
std::vector<int64_t> resolved_axes(const tn_op& op);
bool keepdims_of(const tn_op& op);

tn_status reduction_infer(void* rule, const tn_op*, const tn_dims*, tn_type* out, tn_diag*);
tn_status reduction_cost(void*, const tn_op*, tn_cost* out, tn_diag*);

// Elements per result, for means. TN_E_UNSUPPORTED (TN-SHAPE-004) when a dim is still a symbol: the core then asks
// again with numbers.
int64_t reduced_count(Emit& e, const tn_type& x, const std::vector<int64_t>& axes);

// A reduce node with keepdims as asked; pre and post may be NULL, their slots are numbered once.
struct ReduceNode {
  int64_t monoid;
  std::vector<int64_t> axes;
  bool keepdims;
  const tn_program* pre = nullptr;
  const tn_program* post = nullptr;
  std::vector<tn_push> push;
};
Value emit_reduce(Emit& e, std::initializer_list<Value> in, const ReduceNode& node);

// The operand's dims with the reduced ones as 1.
std::vector<int64_t> kept_dims(const tn_type& x, const std::vector<int64_t>& axes);

inline constexpr tn_attr_def kReductionAttrs[] = {attr_def(TN_KEY_AXES, TN_ATTR_I64S, "axes"),
                                                  attr_def_i64(TN_KEY_KEEPDIMS, "keepdims", 0)};

constexpr tn_op_def reduction_def(uint32_t op_id, const Reduction* rule, tn_rule_fn expand, tn_rule_fn vjp = nullptr) {
  tn_op_def d{};
  d.size = sizeof(tn_op_def);
  d.flags = TN_DEF_WIDE;
  d.op_id = op_id;
  d.version = 1;
  d.n_in = d.n_out = 1;
  d.n_attr_defs = 2;
  d.name = rule->name;
  d.attr_defs = kReductionAttrs;
  d.infer = reduction_infer;
  d.expand = expand;
  d.vjp = vjp;
  d.cost = reduction_cost;
  d.ctx = const_cast<Reduction*>(rule);
  return d;
}

// Expansion of a reduction that is one monoid and nothing else.
template <int64_t monoid>
tn_status expand_monoid(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  e.result(0, emit_reduce(e, {e.in(0)}, {monoid, resolved_axes(e.self()), keepdims_of(e.self())}));
  return e.status();
}

}  // namespace tenon::ops
