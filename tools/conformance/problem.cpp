#include "tools/conformance/problem.h"

#include <tenon/ops.h>

#include <algorithm>

#include "ops/emit.h"

namespace tenon::conformance {
namespace {

void broadcast_to(const tn_type& like, tn_type* t) {
  const int lead = like.rank - t->rank;
  tn_type wide = *t;
  wide.rank = like.rank;
  for (int i = 0; i < like.rank; ++i) {
    const bool own = i >= lead && (t->dim[i - lead] != 1 || like.dim[i] == 1);
    wide.dim[i] = like.dim[i];
    wide.stride[i] = own ? t->stride[i - lead] : 0;
  }
  *t = wide;
}

bool counts_index(const tn_op& op) {
  for (const uint32_t key : {TN_KEY_PROGRAM, TN_KEY_PRE, TN_KEY_POST})
    if (const tn_program* p = ops::attr_program(op, key); p != nullptr && (p->opcodes >> TN_OP_INDEX & 1) != 0) return true;
  return false;
}

// Axis `i` and the next are one in every operand.
bool mergeable(const std::vector<tn_type>& types, int i) {
  return std::all_of(types.begin(), types.end(), [i](const tn_type& t) { return t.dtype == 0 || t.stride[i] == t.stride[i + 1] * t.dim[i + 1]; });
}

void drop_axis(tn_type* t, int axis) {
  for (int k = axis; k + 1 < t->rank; ++k) t->dim[k] = t->dim[k + 1], t->stride[k] = t->stride[k + 1];
  --t->rank;
  t->dim[t->rank] = t->stride[t->rank] = 0;
}

void merge_axes(std::vector<tn_type>* types) {
  const tn_type& model = types->back();
  for (int i = model.rank - 2; i >= 0; --i) {
    if (!mergeable(*types, i)) continue;
    for (tn_type& t : *types) {
      if (t.dtype == 0) continue;
      t.dim[i + 1] *= t.dim[i];
      drop_axis(&t, i);
    }
  }
}

const char* key_name(uint32_t key) {
#define TN_NAME_(NAME, name, number, type) \
  case number: return #name;
  switch (key) { TN_ATTRS(TN_NAME_) }
#undef TN_NAME_
  return "?";
}

std::string program_text(void (*write)(ops::ProgramBuilder&), uint32_t dtype) {
#define TN_NAME_(name, code, operands, e32, e64, meaning) {code, #name},
  static const struct { int code; const char* name; } names[] = {TN_OPCODES(TN_NAME_)};
#undef TN_NAME_
  ops::ProgramBuilder builder(dtype);
  write(builder);
  const tn_program* p = builder.finish();
  std::string text;
  for (int i = 0; i < p->n_inst; ++i)
    for (const auto& n : names)
      if (n.code == p->inst[i].op && n.code != TN_OP_INPUT) {
        std::string name = std::string(n.name).substr(6);
        std::transform(name.begin(), name.end(), name.begin(), [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
        text += (text.empty() ? "" : "+") + name;
      }
  return text.empty() ? "identity" : text;
}

std::string operand_text(const Array& a) {
  if (a.absent()) return "-";
  const tn_type t = place(a).type;
  const std::string text = ops::type_text(t);
  if (a.layout == ops::Layout::Dense && !a.reversed) return text;
  std::string strides;
  for (int i = 0; i < t.rank; ++i) strides += (i != 0 ? "," : "") + std::to_string(t.stride[i]);
  return text + "{" + strides + "}";
}

}  // namespace

std::string spec_text(const Call& call) {
  std::string text = call.op;
  for (const Array& a : call.in) text += " " + operand_text(a);
  for (const ops::CaseAttr& a : call.attrs) {
    text += std::string(" --attr ") + key_name(a.key) + "=";
    switch (a.kind) {
      case ops::CaseAttr::Kind::I64: text += a.key == TN_KEY_DTYPE ? std::string(ops::dtype_name(static_cast<uint32_t>(a.i))) : std::to_string(a.i); break;
      case ops::CaseAttr::Kind::F64: text += number_text(static_cast<Number>(a.f)); break;
      case ops::CaseAttr::Kind::Program: text += program_text(a.program, call.program_dtype); break;
      case ops::CaseAttr::Kind::I64s:
        for (size_t i = 0; i < a.list.size(); ++i) text += (i != 0 ? "," : "") + std::to_string(a.list[i]);
    }
  }
  return text;
}

Problem& Problem::operator=(const Problem& other) {
  call = other.call, in = other.in, out = other.out, seen = other.seen, op_ = other.op_;
  op_.type = seen.data();
  return *this;
}

Problem Problem::with_opaque(uint32_t operand) const {
  Problem p = *this;
  tn_type& t = p.seen[operand];
  t.layout = TN_LAYOUT_OPAQUE, t.align_log2 = 6;
  int64_t step = 1;
  for (int i = t.rank - 1; i >= 0; --i) t.stride[i] = step, step *= t.dim[i];
  return p;
}

std::string Problem::text() const { return spec_text(*call); }

tn_status make_problem(const Call& call, Problem* out, std::string* message) {
  *out = Problem();
  out->call = &call;
  std::vector<tn_type> in;
  for (const Array& a : call.in) {
    out->in.push_back(place(a));
    in.push_back(out->in.back().type);
  }
  if (tn_status s = reference_machine().infer_types(call, in, &out->out, message); s != TN_OK) return s;
  const tn_attr* attrs = nullptr;
  uint32_t n_attr = 0;
  if (tn_status s = reference_machine().attributes(call, &attrs, &n_attr, message); s != TN_OK) return s;
  for (tn_type& t : out->out)
    if (t.dtype != 0) t.align_log2 = 6;
  const ops::OpDecl* decl = nullptr;
  for (const ops::OpDecl* d : ops::all_ops())
    if (call.op == d->def.name) decl = d;
  if (decl == nullptr) return TN_E_NOT_FOUND;
  tn_op& op = out->op_;
  op.size = sizeof op;
  op.op_id = decl->def.op_id, op.op_version = decl->def.version;
  op.attr = attrs, op.n_attr = static_cast<uint16_t>(n_attr);
  op.push_bytes = static_cast<uint32_t>(8 * call.push.size());
  op.n_in = static_cast<uint16_t>(in.size()), op.n_out = static_cast<uint16_t>(out->out.size());
  out->seen = in;
  out->seen.insert(out->seen.end(), out->out.begin(), out->out.end());
  if ((decl->def.flags & TN_DEF_ELEMENTWISE) != 0 && !out->out.empty()) {
    for (size_t i = 0; i < in.size(); ++i)
      if (in[i].dtype != 0) broadcast_to(out->out[0], &out->seen[i]);
    if (!counts_index(op)) merge_axes(&out->seen);
  }
  op.type = out->seen.data();
  return TN_OK;
}

}  // namespace tenon::conformance
