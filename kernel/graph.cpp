#include "kernel/graph.h"

#include <algorithm>
#include <cstring>

#include "kernel/dims.h"
#include "kernel/runtime.h"
#include "kernel/status.h"
#include "kernel/type_table.h"

namespace tenon::kernel {

OpView::OpView(const OpEntry& op, const AttrSet& attrs, std::span<const tn_type> in, std::span<const tn_type> out, uint32_t push_bytes,
               uint32_t math_flags) {
  types_.assign(in.begin(), in.end());
  types_.insert(types_.end(), out.begin(), out.end());
  if (types_.empty()) types_.resize(1);
  op_.size = sizeof op_;
  op_.math_flags = math_flags;
  op_.op_id = op.def->op_id;
  op_.op_version = op.def->version;
  op_.n_in = static_cast<uint16_t>(in.size());
  op_.n_out = static_cast<uint16_t>(out.size());
  op_.n_attr = static_cast<uint16_t>(attrs.attrs().size());
  op_.type = types_.data();
  op_.attr = attrs.attrs().data();
  op_.push_bytes = push_bytes;
}

bool derived_shape(const OpEntry& op, const AttrSet& attrs, uint32_t n_in, const OpTable& ops, DerivedShape* out) {
  const OpEntry* base = ops.get(op.base);
  if (!base) return false;
  if (base->derived()) {
    // Outputs of a derived base: one per wanted result.
    DerivedShape inner{};
    // The base's own input count is what is left after its outputs and our seeds; try all splits consistent with masks.
    for (uint32_t b_in = 1; b_in <= n_in; ++b_in) {
      if (!derived_shape(*base, attrs, b_in, ops, &inner)) continue;
      uint32_t b_out = 0;
      for (uint32_t i = 0; i < inner.base_in; ++i) b_out += in_mask(base->need, i);
      uint32_t seeds = 0;
      for (uint32_t i = 0; i < b_out; ++i) seeds += in_mask(op.seeds, i);
      if (b_in + b_out + seeds == n_in) {
        *out = {b_in, b_out, seeds};
        return true;
      }
    }
    return false;
  }
  const uint32_t b_out = output_count(*base->def, attrs);
  uint32_t seeds = 0;
  for (uint32_t i = 0; i < b_out; ++i) seeds += in_mask(op.seeds, i);
  if (n_in < b_out + seeds) return false;
  *out = {n_in - b_out - seeds, b_out, seeds};
  return base->def->n_in == TN_VARIADIC || out->base_in == base->def->n_in;
}

tn_status check_opaque(const OpEntry& op, std::span<const tn_type> in, tn_diag* diag) {
  if (!op.derived() && !op.def->view) return TN_OK;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!is_opaque(in[i])) continue;
    char text[96];
    if (op.derived())
      return fail(diag, TN_E_UNSUPPORTED, id(kOp, 132), "%s: a packed operand has no derivative\nwhy: operand %zu is %s, stored for its own kernels alone\ntry: differentiate with the tensor it was packed from", op.name.c_str(), i, type_text(in[i], text, sizeof text));
    return fail(diag, TN_E_UNSUPPORTED, id(kOp, 131), "%s: a packed tensor has no views\nwhy: it is %s, whose order of elements only its own kernels know\ntry: take the view first, then pack", op.name.c_str(), type_text(in[i], text, sizeof text));
  }
  return TN_OK;
}

tn_status infer_types(const OpEntry& op, const AttrSet& attrs, std::span<const tn_type> in, uint32_t push_bytes, uint32_t math_flags,
                      uint32_t n_out, std::vector<tn_type>* out, const OpTable& ops, const tn_dims* dims, tn_diag* diag) {
  out->clear();
  if (tn_status s = check_opaque(op, in, diag)) return s;
  if (op.derived()) {
    // The derivative with respect to an input has that input's type (dense).
    DerivedShape shape;
    if (!derived_shape(op, attrs, static_cast<uint32_t>(in.size()), ops, &shape))
      return fail(diag, TN_E_ARG, id(kOp, 8), "%s: wrong number of operands\nwhy: %zu given\ntry: pass inputs, outputs, then the seeds", op.name.c_str(), in.size());
    for (uint32_t i = 0; i < shape.base_in; ++i) {
      if (!in_mask(op.need, i)) continue;
      tn_type t = in[i];
      set_dense_strides(&t);
      t.align_log2 = 6;
      out->push_back(t);
    }
    return TN_OK;
  }
  if (op.def->n_in != TN_VARIADIC && in.size() != op.def->n_in)
    return fail(diag, TN_E_ARG, id(kOp, 9), "%s: wrong number of inputs\nwhy: %zu given, %u expected\ntry: pass absent optional operands as NULL", op.name.c_str(),
                in.size(), op.def->n_in);
  out->resize(n_out);
  OpView view(op, attrs, in, *out, push_bytes, math_flags);
  if (tn_status status = op.def->infer(op.def->ctx, &view.op(), dims, out->data(), diag)) return status;
  for (tn_type& t : *out) {
    t.space = 0;
    t.layout = TN_LAYOUT_STRIDED;
    t.align_log2 = op.def->view ? 0 : 6;
    for (int i = t.rank; i < TN_MAX_RANK; ++i) t.dim[i] = t.stride[i] = 0;
  }
  return TN_OK;
}

tn_status infer_concrete(const OpEntry& op, const AttrSet& attrs, std::span<const tn_type> in, uint32_t push_bytes, uint32_t math_flags,
                         uint32_t n_out, std::vector<tn_type>* out, const OpTable& ops, tn_diag* diag) {
  ConcreteDims numbers;
  const tn_dims table = numbers.table();
  if (tn_status s = infer_types(op, attrs, in, push_bytes, math_flags, n_out, out, ops, &table, diag)) return s;
  if (tn_status s = numbers.status(diag)) return s;
  for (const tn_type& t : *out)
    if (t.dtype)  // 0: an output that this call does not have
      if (tn_status s = check_type(t, diag)) return s;
  return TN_OK;
}

bool can_expand(const OpEntry& op) { return op.derived() || op.def->expand != nullptr; }

}  // namespace tenon::kernel

using namespace tenon::kernel;

uint32_t tn_builder::add_value(const tn_type& type, uint32_t node) {
  GraphValue v;
  v.type = type;
  v.node = node;
  values.push_back(v);
  return static_cast<uint32_t>(values.size() - 1);
}

uint32_t tn_builder::add_input(const tn_type& type) {
  const uint32_t v = add_value(type, TN_NONE);
  values[v].input = static_cast<uint32_t>(inputs.size());
  inputs.push_back(v);
  return v;
}

uint32_t tn_builder::add_alias(uint32_t value) {
  const uint32_t v = add_value(values[value].type, TN_NONE);
  values[v].alias = value;
  return v;
}

uint32_t tn_builder::root(uint32_t value) const {
  while (values[value].alias != TN_NONE) value = values[value].alias;
  return value;
}

tn_status tn_builder::add_node(const OpEntry& op, AttrRef attrs, uint32_t math_flags, std::span<const uint32_t> in,
                               std::span<const tn_push> push, uint32_t n_out, uint32_t* out, tn_diag* diag) {
  std::vector<tn_type> in_types(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i] == TN_NONE) continue;
    if (in[i] >= values.size())
      return fail(diag, TN_E_ARG, id(kOp, 10), "%s: operand %zu is no value\nwhy: number %u, the graph has %zu values\ntry: use values returned by emit",
                  op.name.c_str(), i, in[i], values.size());
    in_types[i] = values[in[i]].type;
  }
  std::vector<tn_type> out_types;
  const uint32_t push_bytes = static_cast<uint32_t>(8 * push.size());
  tn_status status = infer_concrete(op, *attrs, in_types, push_bytes, math_flags, n_out, &out_types, runtime.ops(), diag);
  if (status) return status;
  const uint32_t index = static_cast<uint32_t>(nodes.size());
  Node node;
  node.op = &op;
  node.attrs = std::move(attrs);
  node.math_flags = math_flags;
  node.in.assign(in.begin(), in.end());
  node.push.assign(push.begin(), push.end());
  node.note = note;
  for (size_t i = 0; i < out_types.size(); ++i) {
    node.out.push_back(add_value(out_types[i], index));
    out[i] = node.out.back();
  }
  nodes.push_back(std::move(node));
  return TN_OK;
}

namespace {

tn_status stick(tn_builder* b, tn_status status) {
  if (status) b->sticky = status;
  return status;
}

tn_status emit(tn_builder* b, const tn_emit* e, tn_diag* diag) {
  if (b->sticky) return b->sticky;
  const OpEntry* op = b->runtime.ops().find(e->op_id, e->op_version);
  if (!op)
    return stick(b, fail(diag, TN_E_NOT_FOUND, id(kOp, 11), "no op has number %llu\nwhy: a rule or graph asked for it\ntry: define the op before it is used",
                         static_cast<unsigned long long>(e->op_id)));
  uint32_t attr_id;
  AttrRef attrs;
  if (tn_status status = b->runtime.attrs().intern({e->attr, e->n_attr}, &attr_id, &attrs, diag)) return stick(b, status);
  return stick(b, b->add_node(*op, attrs, e->math_flags, {e->in, e->n_in}, {e->push, e->n_push}, e->n_out, e->out, diag));
}

tn_status input(tn_builder* b, const tn_type* type, uint32_t* out, tn_diag* diag) {
  if (tn_status status = check_type(*type, diag)) return stick(b, status);
  *out = b->add_input(*type);
  return TN_OK;
}

tn_status constant(tn_builder* b, const tn_type* type, const void* data, uint32_t* out, tn_diag* diag) {
  if (tn_status status = check_type(*type, diag)) return stick(b, status);
  char text[96];
  if (!is_dense(*type)) return stick(b, fail(diag, TN_E_ARG, id(kOp, 12), "constant is not dense\nwhy: %s has other strides than row-major ones, and constants are copied as they lie\ntry: give row-major data", type_text(*type, text, sizeof text)));
  auto bytes = std::make_unique<std::vector<char>>(dense_bytes(*type));
  if (!bytes->empty()) std::memcpy(bytes->data(), data, bytes->size());
  tn_type t = *type;
  t.align_log2 = 6;
  *out = b->add_value(t, TN_NONE);
  b->values[*out].constant = static_cast<uint32_t>(b->constants.size());
  b->constants.push_back(std::move(bytes));
  return TN_OK;
}

tn_status output(tn_builder* b, const uint32_t* values, uint32_t n, tn_diag* diag) {
  for (uint32_t i = 0; i < n; ++i) {
    if (values[i] >= b->values.size())
      return stick(b, fail(diag, TN_E_ARG, id(kOp, 13), "output %u is no value\nwhy: number %u, the graph has %zu values\ntry: use values returned by emit", i, values[i], b->values.size()));
    b->outputs.push_back(values[i]);
  }
  return TN_OK;
}

tn_status type(tn_builder* b, uint32_t value, tn_type* out, tn_diag* diag) {
  if (value >= b->values.size()) return fail(diag, TN_E_ARG, id(kOp, 14), "no such value\nwhy: number %u, the graph has %zu values\ntry: use values returned by emit", value, b->values.size());
  *out = b->values[value].type;
  return TN_OK;
}

const tn_dims* dims(tn_builder* b) {
  b->dims_table = b->numbers.table();
  return &b->dims_table;
}

tn_status region(tn_builder*, tn_builder**, uint32_t*, tn_diag* diag) {
  return fail(diag, TN_E_UNSUPPORTED, id(kOp, 15), "regions are not offered yet\nwhy: control flow is a provisional part of the builder\ntry: unroll the loop");
}

void note(tn_builder* b, const char* where) { b->note = where ? where : ""; }

constexpr tn_builder_api kApi = {sizeof(tn_builder_api), 0, emit, input, constant, output, type, dims, region, note};

}  // namespace

extern "C" const tn_builder_api* tn_builder_table(void) { return &kApi; }
