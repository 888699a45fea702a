// ops/conv/average.h - how many elements an average takes.
#pragma once
#include "ops/conv/image.h"

namespace tenon::ops {

// v / count for v [N, C, OH, OW] in the compute type, result in `storage`. The count is that of the taps inside x (h by w),
// at least 1; or of all taps where `include_pad`.
Value divide_by_count(Emit&, Value v, const Sliding&, int64_t h, int64_t w, bool include_pad, uint32_t storage);

}  // namespace tenon::ops
