// backends/cpu/amx/amx.h - matrix products on AMX tiles: bf16 x bf16 -> f32 and u8 x i8 -> i32.
//
// Only called when detect_amx() said yes. Tiles are configured on entry and released on return, so that other users of
// the unit in the same thread are not disturbed.
#pragma once
#include "backends/cpu/core.h"

namespace tenon::cpu {

struct AmxProduct {
  const char* a; int64_t a_row;  // bytes between rows; k elements dense
  const char* b; int64_t b_row;  // bytes between rows of b[k,n]; n elements dense
  char* c; int64_t c_row;        // bytes
  int64_t m, n, k;
  bool bf16;                     // else u8 x i8
  bool narrow_out;               // bf16 results
};
// Scratch of one thread for a product of this size, 64-byte aligned.
int64_t amx_scratch_bytes(const AmxProduct&);
void amx_product(const AmxProduct&, char* scratch);

}  // namespace tenon::cpu
