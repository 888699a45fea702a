// ops/reference/indexing.h - what gather and scatter share: an index operand, checked before anything is written.
#pragma once
#include "ops/reference/prepared.h"

namespace tenon::reference {

// One index: position after counting negatives from the end, or -1 when outside 0..limit-1.
inline int64_t resolve_index(int64_t value, int64_t limit) {
  if (value < 0) value += limit;
  return value >= 0 && value < limit ? value : -1;
}
inline int64_t read_index(const char* p, bool wide) {
  if (wide) { int64_t v; std::memcpy(&v, p, 8); return v; }
  int32_t v;
  std::memcpy(&v, p, 4);
  return v;
}

// Checks every stored index once, in row-major order; the first one outside is reported as TN_E_FAILED.
tn_status check_indices(const char* op, const tn_type& index, const void* data, int axis, int64_t limit, tn_diag* diag);

}  // namespace tenon::reference
