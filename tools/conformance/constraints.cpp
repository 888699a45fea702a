#include "tools/conformance/constraints.h"

#include "ops/emit.h"
#include "tools/conformance/number.h"

namespace tenon::conformance {
namespace {

bool in_mask(uint64_t mask, int64_t bit) { return bit >= 0 && bit < 64 && (mask >> bit & 1) != 0; }
bool in_range(const tn_constraint& c, int64_t v) { return v >= c.lo && v <= c.hi; }

// The last `axes` axes lie densely, in row-major order; 0 = all axes.
bool dense(const tn_type& t, uint32_t axes) {
  int64_t step = 1;
  const int first = axes == 0 || axes > t.rank ? 0 : t.rank - static_cast<int>(axes);
  for (int i = 0; i < t.rank; ++i)
    if (t.dim[i] == 0) return true;
  for (int i = t.rank - 1; i >= first; --i) {
    if (t.dim[i] != 1 && t.stride[i] != step) return false;
    step *= t.dim[i];
  }
  return true;
}

bool has_symbol(const tn_type& t) {
  for (int i = 0; i < t.rank; ++i)
    if (TN_IS_SYM(t.dim[i]) || TN_IS_SYM(t.stride[i])) return true;
  return false;
}

int64_t bytes_of(const tn_type& t) {
  int64_t n = static_cast<int64_t>(byte_size(t.dtype));
  for (int i = 0; i < t.rank; ++i) n *= t.dim[i];
  return n;
}

bool dim_holds(const tn_constraint& c, const tn_type& t) {
  const auto axis = static_cast<int32_t>(c.arg);
  if (axis < 0 || axis >= t.rank) return false;
  return c.kind == TN_NEED_DIM ? in_range(c, t.dim[axis]) : c.lo > 0 && t.dim[axis] % c.lo == 0;
}

bool operand_holds(const tn_constraint& c, const tn_op& op, const tn_type& t) {
  if (t.dtype == 0) return true;
  switch (c.kind) {
    case TN_NEED_DTYPE: return in_mask(c.mask, t.dtype);
    case TN_NEED_RANK: return in_range(c, t.rank);
    case TN_NEED_LAYOUT: return in_mask(c.mask, t.layout);
    case TN_NEED_CONTIGUOUS: return dense(t, c.arg);
    case TN_NEED_DIM: case TN_NEED_DIM_MULTIPLE: return dim_holds(c, t);
    case TN_NEED_ALIGN: return t.align_log2 >= c.lo;
    case TN_NEED_SPACE: return in_mask(c.mask, t.space);
    case TN_NEED_SAME_TYPE: return c.arg < uint32_t{op.n_in} + op.n_out && t.dtype == op.type[c.arg].dtype;
    case TN_NEED_STATIC: return !has_symbol(t);
    case TN_NEED_BYTES: return in_range(c, bytes_of(t));
    default: return false;
  }
}

bool program_holds(const tn_constraint& c, const tn_op& op) {
  const tn_program* p = ops::attr_program(op, c.arg);
  if (p == nullptr) return true;
  if (c.kind == TN_NEED_PROGRAM_OPCODES) return (p->opcodes & ~c.mask) == 0;
  return p->n_inst <= c.lo && p->n_in <= (c.hi & 0xFF) && p->n_out <= (c.hi >> 8 & 0xFF);
}

bool attr_holds(const tn_constraint& c, const tn_op& op) {
  const int64_t v = ops::attr_i64(op, c.arg, 0);
  return c.mask != 0 ? in_mask(c.mask, v) : in_range(c, v);
}

bool cap_holds(const tn_constraint& c, const tn_device_ref& device) {
  for (uint32_t i = 0; i < device.n_caps; ++i) {
    const tn_cap& cap = device.caps[i];
    if (cap.key != c.arg) continue;
    const double v = cap.type == TN_CAP_F64 ? cap.v.f : cap.type == TN_CAP_I64 ? static_cast<double>(cap.v.i) : static_cast<double>(cap.v.u);
    return v >= static_cast<double>(c.lo) && v <= static_cast<double>(c.hi);
  }
  return false;
}

bool holds(const tn_constraint& c, const tn_op& op, const tn_device_ref& device, int* operand) {
  switch (c.kind) {
    case TN_NEED_DEVICE_KIND: return device.info->kind == c.arg;
    case TN_NEED_CAP: return cap_holds(c, device);
    case TN_NEED_ATTR: return attr_holds(c, op);
    case TN_NEED_PROGRAM_OPCODES: case TN_NEED_PROGRAM_LIMITS: return program_holds(c, op);
    default: break;
  }
  for (int i = 0; i < op.n_in + op.n_out; ++i) {
    if (c.operand != TN_ANY_OPERAND && c.operand != i) continue;
    *operand = i;
    if (!operand_holds(c, op, op.type[i])) return false;
  }
  return true;
}

const char* kind_name(uint32_t kind) {
  static const char* const names[] = {"?", "dtype", "rank", "layout", "contiguous", "dim", "dim multiple", "alignment", "space", "same type",
                                      "attribute", "capability", "device kind", "program opcodes", "program limits", "static", "bytes"};
  return kind < std::size(names) ? names[kind] : "?";
}

}  // namespace

int first_failing(const tn_kernel_info& kernel, const tn_op& op, const tn_device_ref& device, std::string* why) {
  for (uint32_t i = 0; i < kernel.n_cons; ++i) {
    int operand = -1;
    if (holds(kernel.cons[i], op, device, &operand)) continue;
    *why = std::string("constraint ") + std::to_string(i) + " (" + kind_name(kernel.cons[i].kind) + ")";
    if (operand >= 0) *why += ", operand " + std::to_string(operand) + " " + ops::type_text(op.type[operand]);
    return static_cast<int>(i);
  }
  return -1;
}

}  // namespace tenon::conformance
