// kernel/dims_text.h - texts shared by the two kinds of tn_dims.
#pragma once
#include <tenon/types.h>

#include <cinttypes>
#include <cstdio>

namespace tenon::kernel {

struct DimText { char text[24]; };
inline DimText dim_text(int64_t dim) {  // "7", or "s0" for a symbol
  DimText t;
  if (TN_IS_SYM(dim)) std::snprintf(t.text, sizeof t.text, "s%" PRId64, dim - INT64_MIN);
  else std::snprintf(t.text, sizeof t.text, "%" PRId64, dim);
  return t;
}

// Fill diag (may be NULL) with TN-SHAPE-004 or TN-SHAPE-003; both return TN_E_SHAPE.
tn_status report_overflow(tn_diag* diag, uint32_t dim_op, int64_t a, int64_t b);
tn_status report_relation(tn_diag* diag, uint32_t relation, int64_t a, int64_t b);

}  // namespace tenon::kernel
