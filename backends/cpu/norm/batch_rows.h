// backends/cpu/norm/batch_rows.h - loops of batch norm over f32 values whose statistics belong to channels.
//
// "rows" functions take `rows` x `c` values, channels fastest; per-channel arrays have c elements and are overwritten.
// "plane" functions take n values of one channel.
#pragma once
#include "backends/cpu/core.h"

namespace tenon::cpu {

struct BatchCode {
  // Around pivot[c], a rough mean of this block: drift[c] = sum (x - pivot), square[c] = sum (x - pivot)^2.
  void (*rows_moments)(const float* x, int64_t rows, int64_t c, float* pivot, float* drift, float* square);
  // y = (x - mean) * factor + add
  void (*rows_affine)(const float* x, int64_t rows, int64_t c, const float* mean, const float* factor, const float* add, float* y);
  // sum[c] = sum dy, dot[c] = sum dy * (x - mean)
  void (*rows_grad_sums)(const float* x, const float* dy, int64_t rows, int64_t c, const float* mean, float* sum, float* dot);
  // dx = factor * ((dy - dy_mean) - (x - mean) * slope)
  void (*rows_grad)(const float* x, const float* dy, int64_t rows, int64_t c, const float* mean, const float* factor, const float* dy_mean,
                    const float* slope, float* dx);
  void (*plane_affine)(const float* x, int64_t n, float mean, float factor, float add, float* y);
  double (*plane_dot)(const float* x, const float* dy, int64_t n, float mean);  // sum dy * (x - mean)
  void (*plane_grad)(const float* x, const float* dy, int64_t n, float mean, float factor, float dy_mean, float slope, float* dx);
};
const BatchCode& batch_code(Isa);

}  // namespace tenon::cpu
