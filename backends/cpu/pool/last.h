// backends/cpu/pool/last.h - pooling with channels next to each other in memory: vectors run over channels.
#pragma once
#include "backends/cpu/core.h"

namespace tenon::cpu {

// The part of a window inside the image: positions first, first + dilation, ... (count of them).
struct Span { int64_t first, count; };
struct PoolLine {
  const Span* cols;  // one per output column
  int64_t n_cols, channels;
  int64_t row_step, col_step;   // elements between taps of a window in x (and dx)
  int64_t col_stride;           // elements between columns of x (and dx)
  int64_t out_col_stride;       // elements between output columns
};

// One row of windows. x, dx point at the first row inside the image, `rows` taps high.
struct LastCode {
  void (*max)(const PoolLine&, const float* x, int64_t rows, float* y);
  // Adds (add) or writes what each window gives to its taps.
  void (*max_grad)(const PoolLine&, const float* x, int64_t rows, const float* dy, float* dx, bool add);
  void (*average)(const PoolLine&, const float* x, int64_t rows, int64_t divisor, float* y);  // divisor 0: the taps inside
  void (*average_grad)(const PoolLine&, const float* dy, int64_t rows, int64_t divisor, float* dx, bool add);
};
const LastCode& last_code(Isa);

}  // namespace tenon::cpu
