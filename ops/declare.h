// ops/declare.h - small helpers for the declarations at the end of each op's file.
#pragma once
#include "ops/op.h"

namespace tenon::ops {

constexpr tn_attr_def attr_def(uint32_t key, uint32_t type, const char* name, uint32_t flags = 0) {
  return {key, type, flags, 0, name, {key, type, {}, 0}};
}
// With the value that counts when the attribute is absent.
constexpr tn_attr_def attr_def_i64(uint32_t key, const char* name, int64_t fallback) {
  tn_attr_def d = attr_def(key, TN_ATTR_I64, name);
  d.fallback.v.i = fallback;
  d.fallback.len = 1;
  return d;
}

}  // namespace tenon::ops
