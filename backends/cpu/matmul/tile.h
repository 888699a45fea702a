// backends/cpu/matmul/tile.h - the register tile of f32 matrix products, and the loops that use it.
#pragma once
#include "backends/cpu/core.h"

namespace tenon::cpu {

// One product c[m,n] = a[m,k] b[k,n]; strides in elements, c's rows dense.
struct Product {
  const float* a; int64_t a_row, a_col;  // strides along m and k
  const float* b; int64_t b_row, b_col;  // strides along k and n
  float* c; int64_t c_row;
  int64_t m, n, k;
  // b as MatmulCode.pack stores it, instead of b: columns from first_column (a multiple of 64) on, of packed_columns (likewise).
  const float* packed = nullptr; int64_t packed_columns = 0, first_column = 0;
};

constexpr int64_t kSmallSide = 64;                      // m, n and k of small() at most
constexpr int64_t kDepth = 256, kWidth = 512;           // packed block of b: 512 KiB, a share of L2
constexpr int64_t kPackedBytes = (kDepth * kWidth + 4096) * 4;

struct MatmulCode {
  void (*small)(const Product&);                        // no packing beyond a copy of b when its rows are not dense
  void (*large)(const Product&, float* scratch);        // scratch: kPackedBytes, 64-byte aligned; NULL for a packed b
  // b[0..k) x [0..n): blocks kDepth deep, in each panels of 64 columns, padded with zeros to whole panels.
  void (*pack)(const float* b, int64_t b_row, int64_t b_col, int64_t k, int64_t n, float* out);
};
const MatmulCode& matmul_code(Isa);

}  // namespace tenon::cpu
