// backends/cpu/reduce/fold.h - inner loops of reductions over one block of values.
//
// Float sums run in 64 or more streams per block and are carried on in f64, so that the error stays below
// 8 + log2(n) ULP of the sum of magnitudes.
#pragma once
#include "backends/cpu/core.h"

namespace tenon::cpu {

constexpr int64_t kFoldRows = 16;  // rows of a column sum before it is carried into the wide accumulator

struct Fold {
  uint32_t wide;  // dtype of the accumulator: f64 for float sums and products, else the value's type
  void (*init)(void* acc, int64_t n);                                // n accumulators to the identity
  void (*row)(void* acc, const void* x, int64_t n);                  // one accumulator takes n values
  void (*columns)(void* acc, const void* x, int64_t n);              // n accumulators take a value each (direct)
  void (*combine)(void* acc, const void* other, int64_t n);          // accumulators of another part, in order
  void (*finish)(void* out, const void* acc, int64_t n);             // accumulators to the value's type
  // n accumulators take `count` <= kFoldRows values each, rows `stride` bytes apart; NULL = use columns.
  void (*tile)(void* acc, const void* x, int64_t stride, int64_t count, int64_t n);
};
// NULL when there is no such reduction (AND, OR: bool and integers).
const Fold* find_fold(Isa, uint32_t monoid, uint32_t dtype);

// Index reductions: (best value, index) over n values that start at index `base`. best[0] is only read when *index >= 0.
struct IndexFold { void (*row)(void* best, int64_t* index, const void* x, int64_t base, int64_t n); };
const IndexFold* find_index_fold(Isa, uint32_t monoid, uint32_t dtype);

}  // namespace tenon::cpu
