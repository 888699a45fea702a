// tools/bench/handfused.h - loops that a careful person would write by hand for this one processor.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tenon::bench {

// The chain of `pointwise.chain10`: ten operations, one pass.
//   t = x * 1.5 + 0.25;  s = t * (1 / (exp(t) + 1));  y = min(max(|s - 0.5|, 0.01), 4)
void chain10(const float* x, float* y, size_t n);

// Multiply-adds in registers only; returns how many floating-point operations were made.
double spin_fma(int64_t rounds);

}  // namespace tenon::bench
