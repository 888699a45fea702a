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
  // b as amx_pack stores it, instead of b: columns from first_column (a multiple of 32) on.
  const char* packed = nullptr; int64_t packed_columns = 0, first_column = 0;
};
// Scratch of one thread for a product of this size, 64-byte aligned.
int64_t amx_scratch_bytes(const AmxProduct&);
void amx_product(const AmxProduct&, char* scratch);

// A stored b[k,n]: blocks of kAmxDepthBytes of k (512 bf16, 1024 i8); in each, panels of 32 columns; in a panel, steps of 64
// bytes of k; in a step, [2 halves of 16 columns][16 groups][16 columns] 32-bit lanes that hold the 4 bytes of k of a group of one
// column. Padded with zeros to whole steps and panels.
constexpr int64_t kAmxDepthBytes = 1024;
int64_t amx_packed_bytes(int64_t k, int64_t n, bool bf16);
// Panels first..last-1 of it, of any strides (in bytes).
void amx_pack(const char* b, int64_t b_row, int64_t b_col, int64_t k, int64_t n, bool bf16, int64_t first, int64_t last, char* out);

}  // namespace tenon::cpu
