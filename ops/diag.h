// ops/diag.h - filling a tn_diag: text is cut at 223 bytes, never overrun.
#pragma once
#include <tenon/types.h>

#include <cstdarg>

namespace tenon::ops {

// Returns `status`. diag may be NULL. `format` gives "<what>\nwhy: ...\ntry: ..." (printf style).
tn_status fail_v(tn_diag* diag, tn_status status, uint32_t id, const char* format, va_list args);

}  // namespace tenon::ops
