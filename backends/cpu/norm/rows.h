// backends/cpu/norm/rows.h - loops over one row of f32 values, for kernels that normalise rows.
#pragma once
#include "backends/cpu/core.h"

namespace tenon::cpu {

struct RowCode {
  float (*max)(const float* x, int64_t n);  // n >= 1; a NaN may be passed over
  // Writes e^(x - shift), shift >= all x, to e (NULL = not wanted) and returns their sum.
  double (*exp_sum)(const float* x, float shift, float* e, int64_t n);
  double (*sum)(const float* x, int64_t n);
  double (*square_sum)(const float* x, float mean, int64_t n);  // of (x - mean)^2
  double (*dot)(const float* a, const float* b, int64_t n);
  // y = x * factor + add. stream: past the caches; y 64-byte aligned, n a multiple of 16.
  void (*affine)(const float* x, float factor, float add, float* y, int64_t n, bool stream);
  // y = (x - mean) * rstd * scale + bias; scale, bias may be NULL.
  void (*normalise)(const float* x, float mean, float rstd, const float* scale, const float* bias, float* y, int64_t n, bool stream);
  // dx = rstd * (g - g_mean - (x - mean) * rstd * h_mean), g = dy * scale.
  void (*normalise_grad)(const float* x, const float* g, float mean, float rstd, float g_mean, float h_mean, float* dx, int64_t n);
};
const RowCode& row_code(Isa);

}  // namespace tenon::cpu
