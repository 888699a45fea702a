// kernel/derive.cpp - reverse-mode derivative over a graph, and what an op expands into.
//
// A node with its own vjp rule is asked; one without is expanded and its parts are asked. A derived op expands into the
// derivative of its base, so every order exists without a second mechanism.
#include <algorithm>

#include "kernel/derive.h"
#include "kernel/dims.h"
#include "kernel/runtime.h"
#include "kernel/status.h"

namespace tenon::kernel {
namespace {

constexpr int kMaxDepth = 48;  // an op whose rules lead back to itself must end in an error, not in a crash

class Reverse {
 public:
  Reverse(tn_builder* g, tn_diag* diag) : g_(g), diag_(diag) {}

  uint32_t cotangent(uint32_t value) const { return value < cot_.size() ? cot_[value] : TN_NONE; }

  // Adds `grad` to the cotangent of `value`.
  tn_status accumulate(uint32_t value, uint32_t grad) {
    if (grad == TN_NONE || value == TN_NONE) return TN_OK;
    if (cot_.size() < g_->values.size()) cot_.resize(g_->values.size(), TN_NONE);
    if (cot_[value] == TN_NONE) {
      cot_[value] = grad;
      return TN_OK;
    }
    const OpEntry* sum = g_->runtime.ops().find(g_->runtime.ops().accumulate_op(), 0);
    const uint32_t in[2] = {cot_[value], grad};
    uint32_t out;
    if (tn_status s = g_->add_node(*sum, g_->runtime.attrs().get(0), 0, in, {}, 1, &out, diag_)) return s;
    cot_[value] = out;
    return TN_OK;
  }

  // Walks nodes [first, last) backwards. `active`: values whose derivative somebody needs.
  tn_status sweep(uint32_t first, uint32_t last, const std::vector<bool>& active, int depth) {
    for (uint32_t n = last; n-- > first;) {
      const Node node = g_->nodes[n];  // a copy: the list grows while rules emit
      bool seeded = false, wanted = false;
      for (uint32_t v : node.out) seeded |= cotangent(v) != TN_NONE;
      for (uint32_t v : node.in) wanted |= v != TN_NONE && v < active.size() && active[v];
      if (!seeded || !wanted) continue;
      if (tn_status s = differentiate(node, active, depth)) return s;
    }
    return TN_OK;
  }

  tn_status differentiate(const Node& node, const std::vector<bool>& active, int depth) {
    if (!node.op->derived() && node.op->def->vjp) return by_rule(node, active);
    if (depth == kMaxDepth || !can_expand(*node.op)) {
      return fail(diag_, TN_E_UNSUPPORTED, id(kOp, 16), "%s has no derivative\nwhy: it offers neither a vjp rule nor an expansion\ntry: detach its input, or register a vjp",
                  node.op->name.c_str());
    }
    const uint32_t first = static_cast<uint32_t>(g_->nodes.size());
    std::vector<uint32_t> result(node.out.size(), TN_NONE);
    if (tn_status s = expand_into(g_, *node.op, node.attrs, node.math_flags, node.in, node.out, static_cast<uint32_t>(8 * node.push.size()), result, diag_)) return s;
    const uint32_t last = static_cast<uint32_t>(g_->nodes.size());
    bind_push(first, last, node.push);
    for (size_t i = 0; i < result.size(); ++i)
      if (tn_status s = accumulate(result[i], cotangent(node.out[i]))) return s;
    std::vector<bool> inner = active;
    mark_active(g_, first, last, &inner);
    return sweep(first, last, inner, depth + 1);
  }

  // Slots of an expanded node's push are those of the node itself: replace them by what the node was given.
  void bind_push(uint32_t first, uint32_t last, const std::vector<tn_push>& given) {
    for (uint32_t n = first; n < last; ++n)
      for (tn_push& p : g_->nodes[n].push)
        if (p.from != TN_NONE && p.from < given.size()) p = given[p.from];
  }

 private:
  tn_status by_rule(const Node& node, const std::vector<bool>& active) {
    std::vector<tn_type> types;
    std::vector<uint32_t> seed(node.out.size()), result(node.in.size(), TN_NONE);
    for (uint32_t v : node.in) types.push_back(v == TN_NONE ? tn_type{} : g_->values[v].type);
    const size_t n_in = types.size();
    for (uint32_t v : node.out) types.push_back(v == TN_NONE ? tn_type{} : g_->values[v].type);
    for (size_t i = 0; i < seed.size(); ++i) seed[i] = cotangent(node.out[i]);
    uint64_t need = 0;
    for (uint32_t i = 0; i < n_in; ++i)
      if (node.in[i] != TN_NONE && node.in[i] < active.size() && active[node.in[i]]) need |= uint64_t{1} << (i < 63 ? i : 63);
    OpView view(*node.op, *node.attrs, {types.data(), n_in}, {types.data() + n_in, node.out.size()}, static_cast<uint32_t>(8 * node.push.size()), node.math_flags);
    tn_rule rule{};
    rule.size = sizeof rule;
    rule.kind = TN_RULE_VJP;
    rule.op = &view.op();
    rule.in = node.in.data();
    rule.out = node.out.data();
    rule.seed = seed.data();
    rule.result = result.data();
    rule.need = need;
    const uint32_t first = static_cast<uint32_t>(g_->nodes.size());
    if (tn_status s = node.op->def->vjp(node.op->def->ctx, g_, &rule, diag_)) return s;
    bind_push(first, static_cast<uint32_t>(g_->nodes.size()), node.push);
    for (uint32_t i = 0; i < n_in; ++i)
      if (in_mask(need, i))
        if (tn_status s = accumulate(node.in[i], result[i])) return s;
    return TN_OK;
  }

  tn_builder* g_;
  tn_diag* diag_;
  std::vector<uint32_t> cot_;
};

tn_status expand_derived(tn_builder* g, const OpEntry& op, const AttrRef& attrs, uint32_t math_flags, std::span<const uint32_t> in,
                         uint32_t push_bytes, std::span<uint32_t> result, tn_diag* diag) {
  const OpTable& ops = g->runtime.ops();
  const OpEntry* base = ops.get(op.base);
  DerivedShape shape;
  if (!derived_shape(op, *attrs, static_cast<uint32_t>(in.size()), ops, &shape))
    return fail(diag, TN_E_ARG, id(kOp, 8), "%s: wrong number of operands\nwhy: %zu given\ntry: pass inputs, outputs, then the seeds", op.name.c_str(), in.size());
  // The base node itself, over the given values: no work is done for it unless a rule reads what it did not get.
  Node node;
  node.op = base;
  node.attrs = attrs;
  node.math_flags = math_flags;
  node.in.assign(in.begin(), in.begin() + shape.base_in);
  node.out.assign(in.begin() + shape.base_in, in.begin() + shape.base_in + shape.base_out);
  for (uint32_t i = 0; i < push_bytes / 8; ++i) node.push.push_back(tn_push{0, i, 0});
  // One value may stand at several operands: each gets a name of its own, so that derivatives do not mix.
  std::vector<uint32_t> seen;
  auto unique_name = [&](uint32_t& v) {
    if (v == TN_NONE) return;
    if (std::find(seen.begin(), seen.end(), v) != seen.end()) v = g->add_alias(v);
    seen.push_back(v);
  };
  for (uint32_t& v : node.in) unique_name(v);
  for (uint32_t& v : node.out) unique_name(v);
  Reverse reverse(g, diag);
  std::vector<bool> active(g->values.size(), false);
  for (uint32_t i = 0; i < shape.base_in; ++i)
    if (in_mask(op.need, i) && node.in[i] != TN_NONE) active[node.in[i]] = true;
  uint32_t seed = shape.base_in + shape.base_out;
  for (uint32_t i = 0; i < shape.base_out; ++i)
    if (in_mask(op.seeds, i))
      if (tn_status s = reverse.accumulate(node.out[i], in[seed++])) return s;
  if (tn_status s = reverse.differentiate(node, active, 0)) return s;
  uint32_t k = 0;
  for (uint32_t i = 0; i < shape.base_in; ++i)
    if (in_mask(op.need, i)) result[k++] = node.in[i] == TN_NONE ? TN_NONE : reverse.cotangent(node.in[i]);
  return TN_OK;
}

}  // namespace

void mark_active(const tn_builder* g, uint32_t first, uint32_t last, std::vector<bool>* active) {
  active->resize(g->values.size(), false);
  for (uint32_t n = first; n < last; ++n) {
    bool any = false;
    for (uint32_t v : g->nodes[n].in) any |= v != TN_NONE && (*active)[v];
    if (any)
      for (uint32_t v : g->nodes[n].out) (*active)[v] = true;
  }
}

tn_status expand_into(tn_builder* g, const OpEntry& op, const AttrRef& attrs, uint32_t math_flags, std::span<const uint32_t> in,
                      std::span<const uint32_t> out, uint32_t push_bytes, std::span<uint32_t> result, tn_diag* diag) {
  if (op.derived()) return expand_derived(g, op, attrs, math_flags, in, push_bytes, result, diag);
  std::vector<tn_type> types;
  for (uint32_t v : in) types.push_back(v == TN_NONE ? tn_type{} : g->values[v].type);
  const size_t n_in = types.size();
  std::vector<tn_type> out_types;
  if (!out.empty() && out[0] != TN_NONE) {
    for (uint32_t v : out) out_types.push_back(v == TN_NONE ? tn_type{} : g->values[v].type);  // an optional output may be absent
  } else {
    if (tn_status s = infer_concrete(op, *attrs, types, push_bytes, math_flags, static_cast<uint32_t>(result.size()), &out_types, g->runtime.ops(), diag)) return s;
  }
  OpView view(op, *attrs, {types.data(), n_in}, out_types, push_bytes, math_flags);
  std::vector<uint32_t> ins(in.begin(), in.end());
  tn_rule rule{};
  rule.size = sizeof rule;
  rule.kind = TN_RULE_EXPAND;
  rule.op = &view.op();
  rule.in = ins.data();
  rule.result = result.data();
  rule.need = ~uint64_t{0};
  return op.def->expand(op.def->ctx, g, &rule, diag);
}

tn_status reverse_graph(tn_builder* g, std::span<const uint32_t> outputs, std::span<const uint32_t> seeds, std::span<const uint32_t> inputs,
                        std::span<uint32_t> grads, tn_diag* diag) {
  Reverse reverse(g, diag);
  std::vector<bool> active(g->values.size(), false);
  for (uint32_t v : inputs) active[v] = true;
  const uint32_t last = static_cast<uint32_t>(g->nodes.size());
  mark_active(g, 0, last, &active);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (tn_status s = reverse.accumulate(outputs[i], seeds[i])) return s;
  if (tn_status s = reverse.sweep(0, last, active, 0)) return s;
  for (size_t i = 0; i < inputs.size(); ++i) grads[i] = reverse.cotangent(inputs[i]);
  return TN_OK;
}

}  // namespace tenon::kernel
