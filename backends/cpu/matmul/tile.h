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
};

constexpr int64_t kSmallSide = 64;                      // m, n and k of small() at most
constexpr int64_t kDepth = 256, kWidth = 512;           // packed block of b: 512 KiB, a share of L2
constexpr int64_t kPackedBytes = (kDepth * kWidth + 4096) * 4;

struct MatmulCode {
  void (*small)(const Product&);                        // no packing beyond a copy of b when its rows are not dense
  void (*large)(const Product&, float* scratch);        // scratch: kPackedBytes, 64-byte aligned
};
const MatmulCode& matmul_code(Isa);

}  // namespace tenon::cpu
