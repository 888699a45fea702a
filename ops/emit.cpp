// ops/emit.cpp - nodes of rules through the C builder table.
#include "ops/emit.h"

#include <algorithm>
#include <cstdarg>
#include <limits>

#include "ops/diag.h"
#include "ops/op.h"

namespace tenon::ops {
namespace {

tn_attr to_c(const Attr& a) {
  tn_attr c{a.key, a.type, {}, 1};
  switch (a.type) {
    case TN_ATTR_I64: c.v.i = a.i; break;
    case TN_ATTR_F64: c.v.f = a.f; break;
    case TN_ATTR_I64S: c.v.p = a.list.data(), c.len = a.list.size(); break;
    default: c.v.p = a.p;
  }
  return c;
}

void sort_by_key(std::vector<tn_attr>& attrs) {
  std::sort(attrs.begin(), attrs.end(), [](const tn_attr& a, const tn_attr& b) { return a.key < b.key; });
}

// Float to integer with saturation: a literal is written as a double whatever its type.
template <class T>
T saturate(double v) {
  if (!(v == v)) return 0;
  if (v <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (v >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(v);
}

template <class T>
uint64_t to_bits(T v) {
  uint64_t bits = 0;
  std::memcpy(&bits, &v, sizeof v);
  return bits;
}

uint64_t scalar_bits(double v, uint32_t dtype) {
  switch (compute_type(dtype)) {
    case TN_F32: return to_bits(static_cast<float>(v));
    case TN_F64: return to_bits(v);
    case TN_BOOL: return v != 0;
    case TN_U8: return to_bits(saturate<uint8_t>(v));
    case TN_I8: return to_bits(saturate<int8_t>(v));
    case TN_U16: return to_bits(saturate<uint16_t>(v));
    case TN_I16: return to_bits(saturate<int16_t>(v));
    case TN_U32: return to_bits(saturate<uint32_t>(v));
    case TN_I32: return to_bits(saturate<int32_t>(v));
    case TN_U64: return to_bits(saturate<uint64_t>(v));
    default: return to_bits(saturate<int64_t>(v));
  }
}

}  // namespace

tn_push literal(double value, uint32_t compute_dtype) { return {scalar_bits(value, compute_dtype), TN_NONE, 0}; }
tn_push literal_bits(uint64_t bits) { return {bits, TN_NONE, 0}; }
tn_push slot(uint32_t k) { return {0, k, 0}; }

std::vector<Value> Emit::emit_node(uint64_t op_id, std::span<const Value> in, std::vector<tn_attr> attrs,
                                   std::span<const tn_push> push, uint32_t n_out) {
  std::vector<Value> out(n_out);
  if (!ok()) return out;
  sort_by_key(attrs);
  std::vector<uint32_t> ids, results(n_out, TN_NONE);
  for (Value v : in) ids.push_back(v.id);
  tn_emit e{};
  e.size = sizeof e;
  e.math_flags = rule_->op ? rule_->op->math_flags : 0;
  e.op_id = op_id;
  e.n_in = static_cast<uint16_t>(ids.size());
  e.n_out = static_cast<uint16_t>(n_out);
  e.n_attr = static_cast<uint16_t>(attrs.size());
  e.attr = attrs.data();
  e.in = ids.data();
  e.out = results.data();
  e.push = push.data();
  e.n_push = static_cast<uint32_t>(push.size());
  status_ = api_->emit(b_, &e, diag_);
  for (uint32_t i = 0; ok() && i < n_out; ++i) out[i] = {results[i]};
  return out;
}

std::vector<Value> Emit::ops(uint64_t op_id, std::span<const Value> in, std::span<const Attr> attrs,
                             std::span<const tn_push> push, uint32_t n_out) {
  std::vector<tn_attr> list;
  for (const Attr& a : attrs) list.push_back(to_c(a));
  return emit_node(op_id, in, std::move(list), push, n_out);
}

Value Emit::op(uint64_t op_id, std::initializer_list<Value> in, std::initializer_list<Attr> attrs,
               std::initializer_list<tn_push> push) {
  return ops(op_id, std::span(in.begin(), in.size()), std::span(attrs.begin(), attrs.size()),
             std::span(push.begin(), push.size()), 1)[0];
}

Value Emit::same_attrs(uint64_t op_id, std::initializer_list<Value> in, std::initializer_list<Attr> replace) {
  std::vector<tn_attr> list;
  for (const tn_attr& a : copy_attrs(self())) {
    const bool replaced = std::any_of(replace.begin(), replace.end(), [&](const Attr& r) { return r.key == a.key; });
    if (!replaced) list.push_back(a);
  }
  for (const Attr& a : replace) list.push_back(to_c(a));
  return emit_node(op_id, std::span(in.begin(), in.size()), std::move(list), {}, 1)[0];
}

tn_type Emit::type(Value v) {
  tn_type t{};
  if (ok()) status_ = api_->type(b_, v.id, &t, diag_);
  return ok() ? t : tn_type{};
}

std::vector<int64_t> Emit::dims(Value v) {
  const tn_type t = type(v);
  return {t.dim, t.dim + t.rank};
}

const tn_dims* Emit::arithmetic() const { return api_->dims(b_); }

tn_status Emit::fail(tn_status status, uint32_t id, const char* format, ...) {
  if (!ok()) return status_;
  va_list args;
  va_start(args, format);
  status_ = fail_v(diag_, status, id, format, args);
  va_end(args);
  return status_;
}

}  // namespace tenon::ops
