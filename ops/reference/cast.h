// ops/reference/cast.h - TN_OP_CAST over arrays: float to float to nearest even, float to integer toward zero, saturating,
// NaN to 0; integer to integer wraps; to bool x != 0.
//
//   CastFn f = cast_fn(TN_F32, TN_I8);   f(n, dst, src);   // dense arrays that do not overlap, or dst == src exactly
//
// Threads: any. Allocates nothing.
#pragma once
#include "ops/reference/dtype.h"

namespace tenon::reference {
using CastFn = void (*)(int64_t n, void* dst, const void* src);
CastFn cast_fn(uint32_t from, uint32_t to);  // NULL when either type has no scalar arithmetic or storage here
}  // namespace tenon::reference
