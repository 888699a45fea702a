// Recording: what the tape keeps of a call.
#include "framework/autograd/node.h"

namespace tenon::detail {
namespace {

// Which operands of a call its derivative reads. Depends on op, attributes, types and on who wants a gradient.
struct Key {
  uint64_t need;
  uint32_t op, attr, n_in, push_bytes;
  const In* in;
};

bool matches(const VjpEntry& e, const Key& k, uint64_t runtime) {
  if (e.runtime != runtime || e.op != k.op || e.attr != k.attr || e.need != k.need || e.n_in != k.n_in || e.push_bytes != k.push_bytes) return false;
  for (uint32_t i = 0; i < k.n_in; ++i) if (e.in[i] != k.in[i].type) return false;
  return true;
}

uint64_t reads(RuntimeState* rt, const Call& call, uint32_t derived, uint32_t attr, uint64_t seeds, TensorImpl** out) {
  if (call.n_in + call.n_out > 62) return ~uint64_t{0};
  std::vector<uint32_t> types;
  for (uint32_t i = 0; i < call.n_in; ++i) types.push_back(call.in[i].type);
  for (uint32_t j = 0; j < call.n_out; ++j) types.push_back(out[j] ? out[j]->type : 0);
  for (uint32_t j = 0; j < call.n_out; ++j) if (seeds >> j & 1) types.push_back(out[j]->type);
  const tn_spec spec{derived, attr, call.device->id, call.push_bytes, static_cast<uint32_t>(types.size()), 0, types.data()};
  uint64_t in = 0, result = 0;
  // A rule whose reads are not known keeps everything: more memory, the same numbers.
  if (tn_op_reads(rt->handle, &spec, &in, &result, nullptr) != TN_OK) return ~uint64_t{0};
  return in | result << call.n_in;
}

void fill(ThreadState& ts, VjpEntry& e, const Key& k, const Call& call, TensorImpl** out) {
  RuntimeState* rt = call.device->runtime;
  e = VjpEntry{rt->serial, k.need, 0, k.op, k.attr, k.n_in, 0, 0, k.push_bytes, {}};
  for (uint32_t i = 0; i < k.n_in && i < 8; ++i) e.in[i] = k.in[i].type;
  for (uint32_t j = 0; j < call.n_out; ++j)
    if (out[j] && is_float(dtype_of_type(ts, rt, out[j]->type))) e.differentiable |= 1u << j;
  if (e.differentiable == 0) return;
  e.derived = derive(ts, rt, k.op, 1, k.need, nullptr);
  if (e.derived == 0) return;
  e.keep = reads(rt, call, e.derived, k.attr, 1, out);
  if (call.n_out == 1) return;
  // More outputs: a sweep may reach any of them, so what any set of seeds reads is kept.
  uint64_t all = 0;
  for (uint32_t j = 0; j < call.n_out; ++j) if (e.differentiable >> j & 1) all |= uint64_t{1} << j;
  const uint32_t full = derive(ts, rt, k.op, all, k.need, nullptr);
  if (full != 0) e.keep |= reads(rt, call, full, k.attr, all, out);
}

void check_not_stale_view(const Call& call) {
  for (uint32_t i = 0; i < call.n_in; ++i) {
    const Node* n = call.in[i].node;
    if (n == nullptr || !n->is_view || is_type_only(call.in[i].handle)) continue;
    const uint64_t now = writes_of(call.in[i].handle);
    if (now == n->view_version) continue;
    raise(TN_E_STATE, error::id(error::kGrad, 7), call.where, call.name ? call.name : op_name(call.number),
          "a view is used after its memory was written in place",
          format("operand %u, a %s view of %s, was taken at version %llu, the memory is at version %llu", i, n->name,
                 type_text(n->device->runtime, call.in[i].type).c_str(), static_cast<unsigned long long>(n->view_version),
                 static_cast<unsigned long long>(now)),
          "take the view again after the write");
  }
}

bool kept(uint64_t mask, uint32_t operand) { return operand >= 63 ? mask >> 63 : (mask >> operand & 1); }

void keep(Node& n, uint32_t slot, tn_tensor* handle, uint64_t writes) {
  tn_tensor_retain(handle);
  n.saved[slot] = {handle, writes};
}

}  // namespace

uint32_t derive(ThreadState& ts, RuntimeState* rt, uint32_t op, uint64_t seeds, uint64_t need, tn_diag* diag) {
  DeriveEntry& e = ts.derives[(op * 31 + static_cast<uint32_t>(need) * 7 + static_cast<uint32_t>(seeds)) % ThreadState::kDerives];
  if (e.runtime == rt->serial && e.op == op && e.seeds == seeds && e.need == need) return e.id;
  tn_derive d{};
  d.size = sizeof d;
  d.rule = TN_RULE_VJP;
  d.seeds = seeds;
  d.need = need;
  uint32_t id = 0;
  if (tn_op_derive(rt->handle, op, &d, &id, diag) != TN_OK) return 0;
  e = {rt->serial, seeds, need, op, id};
  return id;
}

void record(ThreadState& ts, const Call& call, uint32_t op, uint32_t attr, TensorImpl** out, const uint64_t* writes_before) {
  uint64_t need = 0;
  uint32_t depth = 0, hash = op + attr * 31;
  for (uint32_t i = 0; i < call.n_in; ++i) {
    hash = hash * 31 + call.in[i].type;
    if (call.in[i].node == nullptr) continue;
    need |= uint64_t{1} << (i < 63 ? i : 63);
    depth = std::max(depth, call.in[i].node->depth);
    if (__builtin_expect(call.in[i].node->is_view, 0)) check_not_stale_view(call);
  }
  const Key key{need, op, attr, call.n_in, call.push_bytes, call.in};
  VjpEntry scratch;
  VjpEntry& e = call.n_in <= 8 ? ts.vjps[hash % ThreadState::kVjps] : scratch;
  if (!matches(e, key, call.device->runtime->serial)) fill(ts, e, key, call, out);
  if (e.differentiable == 0) return;

  Node* n = new_node(ts, call.n_in, call.n_out);
  n->op = op;
  n->attr = attr;
  n->need = need;
  n->derived = e.derived;
  n->no_derivative = e.derived == 0;
  n->device = call.device;
  n->name = call.name ? call.name : op_name(call.number);
  n->where = call.where;
  n->depth = depth + 1;
  n->push_bytes = std::min<uint32_t>(call.push_bytes, Node::kPush);
  for (uint32_t b = 0; b < n->push_bytes; b += 8) std::memcpy(n->push + b, static_cast<const uint8_t*>(call.push) + b, 8);
  for (uint32_t i = 0; i < call.n_in; ++i) {
    const In& x = call.in[i];
    n->types[i] = x.type;
    n->edges[i] = {x.node ? retain_node(x.node) : nullptr, x.output};
    const bool wanted = x.handle != nullptr && !is_type_only(x.handle) && kept(e.keep, i);
    if (!wanted) continue;
    uint64_t writes = 0;
    bool written = false;  // in place: the value that the rule wants is gone, and the version says so
    for (uint32_t j = 0; call.in_place && j < call.n_out; ++j)
      if (out[j] && out[j]->handle == x.handle) written = true, writes = writes_before[j];
    keep(*n, i, x.handle, written ? writes : writes_of(x.handle));
  }
  for (uint32_t j = 0; j < call.n_out; ++j) {
    n->types[call.n_in + j] = out[j] ? out[j]->type : 0;
    if (out[j] && kept(e.keep, call.n_in + j)) keep(*n, call.n_in + j, out[j]->handle, writes_of(out[j]->handle));
  }
  if (call.view) n->is_view = true, n->view_version = writes_of(out[0]->handle);
  for (uint32_t j = 0; j < call.n_out; ++j)
    if (out[j] && (e.differentiable >> j & 1)) attach(out[j], n, j);
  release_node(n);  // the outputs hold it now
}

// The gradient of a copy is a copy back.
void record_transfer(ThreadState& ts, const Tensor& from, Tensor& to, Where where) {
  if (!ts.grad_enabled) return;
  Node* source = from.impl()->node;
  if (source == nullptr && to.impl()->node == nullptr) return;
  if (source == nullptr) {  // overwritten by a constant: no history left
    release_node(std::exchange(to.impl()->node, nullptr));
    return;
  }
  Node* n = new_node(ts, 1, 1);
  n->kind = NodeKind::Transfer;
  n->name = "copy";
  n->where = where;
  n->device = from.impl()->device;
  n->depth = source->depth + 1;
  n->need = 1;
  n->types[0] = from.impl()->type;
  n->types[1] = to.impl()->type;
  n->edges[0] = {retain_node(source), from.impl()->output};
  attach(to.impl(), n, 0);
  release_node(n);
}

}  // namespace tenon::detail
