// ops/attrs.cpp - reading attributes.
#include "ops/emit.h"

namespace tenon::ops {

const tn_attr* find_attr(const tn_op& op, uint32_t key) {
  for (uint32_t i = 0; i < op.n_attr; ++i)
    if (op.attr[i].key == key) return &op.attr[i];
  return nullptr;
}

int64_t attr_i64(const tn_op& op, uint32_t key, int64_t fallback) {
  const tn_attr* a = find_attr(op, key);
  return a && a->type == TN_ATTR_I64 ? a->v.i : fallback;
}

double attr_f64(const tn_op& op, uint32_t key, double fallback) {
  const tn_attr* a = find_attr(op, key);
  return a && a->type == TN_ATTR_F64 ? a->v.f : fallback;
}

std::vector<int64_t> attr_ints(const tn_op& op, uint32_t key, std::vector<int64_t> fallback) {
  const tn_attr* a = find_attr(op, key);
  if (!a || a->type != TN_ATTR_I64S) return fallback;
  const auto* p = static_cast<const int64_t*>(a->v.p);
  return {p, p + a->len};
}

const tn_program* attr_program(const tn_op& op, uint32_t key) {
  const tn_attr* a = find_attr(op, key);
  return a && a->type == TN_ATTR_PROGRAM ? static_cast<const tn_program*>(a->v.p) : nullptr;
}

std::vector<tn_attr> copy_attrs(const tn_op& op) { return {op.attr, op.attr + op.n_attr}; }

}  // namespace tenon::ops
