// Built with -O3 -march=native: this program runs on the machine that built it, or says that it cannot.
#include "tools/bench/handfused.h"

#include <bit>
#include <cmath>

namespace tenon::bench {
namespace {

// e^x with the reduction, the degree and the care for limits of Tenon's own vector loop, so that what is compared is the
// cost of a scalar program and not that of a cheaper function.
inline float exp_polynomial(float x) {
  float c = x > -104.0f ? x : -104.0f;
  c = c < 89.0f ? c : 89.0f;
  const float q = std::nearbyintf(c * 1.44269504f);
  float r = __builtin_fmaf(-q, 0.693359375f, c);
  r = __builtin_fmaf(-q, -2.12194440e-4f, r);
  float p = 1.9841270e-4f;
  p = __builtin_fmaf(p, r, 1.3888889e-3f);
  p = __builtin_fmaf(p, r, 8.3333333e-3f);
  p = __builtin_fmaf(p, r, 4.1666667e-2f);
  p = __builtin_fmaf(p, r, 1.6666667e-1f);
  p = __builtin_fmaf(p, r, 0.5f);
  const float value = __builtin_fmaf(r * r, p, r) + 1.0f;
  const int32_t power = static_cast<int32_t>(q), half = power >> 1;  // two factors: the result may be subnormal
  const float low = std::bit_cast<float>((half + 127) << 23), high = std::bit_cast<float>((power - half + 127) << 23);
  const float y = value * low * high;
  return x != x ? x : y;
}

}  // namespace

void chain10(const float* __restrict x, float* __restrict y, size_t n) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) {
    const float t = x[i] * 1.5f + 0.25f;
    float s = t * (1.0f / (exp_polynomial(t) + 1.0f));
    s = std::fabs(s - 0.5f);
    s = s < 0.01f ? 0.01f : s;
    y[i] = s > 4.0f ? 4.0f : s;
  }
}

double spin_fma(int64_t rounds) {
  constexpr int kLanes = 16, kChains = 12;  // enough independent sums to hide the latency of two units
  typedef float Vector __attribute__((vector_size(4 * kLanes)));
  Vector sum[kChains] = {};
  Vector a, b;
  for (int l = 0; l < kLanes; ++l) a[l] = 0.999f, b[l] = 1e-3f;
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sum[c] = sum[c] * a + b;
    __asm__ volatile("" : "+v"(a));
  }
  volatile float sink = 0;
  for (int c = 0; c < kChains; ++c) sink = sink + sum[c][0];
  return 2.0 * kLanes * kChains * static_cast<double>(rounds);
}

}  // namespace tenon::bench
