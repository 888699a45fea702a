// ops/reference/eval.h - one scalar opcode over a block of values.
//
//   EvalFn add = eval_fn(TN_OP_ADD, TN_F32, TN_F32);   add(n, dst, a, b, nullptr);
//
// Arrays are dense; dst may be exactly a, b or c but must not overlap them otherwise. Results are those of the opcode
// table in <tenon/types.h>; transcendental f32 opcodes are computed in f64 and rounded once. Threads: any.
#pragma once
#include "ops/reference/dtype.h"

#include <type_traits>

namespace tenon::reference {

using EvalFn = void (*)(int64_t n, void* dst, const void* a, const void* b, const void* c);

// `type`: the result's dtype, `operand`: that of a (of b for SELECT). NULL when the opcode does not exist for them.
// INPUT, CONST, INDEX, CAST and PHILOX are not here: the interpreter does them.
EvalFn eval_fn(uint32_t op, uint32_t type, uint32_t operand);
EvalFn eval_float_fn(uint32_t op, uint32_t operand);
EvalFn eval_int_fn(uint32_t op, uint32_t operand);

// The published generator: 10 rounds over a 128-bit counter.
void philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
// TN_OP_PHILOX: word 0..3 of the block numbered `counter` under `key` (counter and key in the low two words).
uint32_t philox(uint64_t counter, uint64_t key, uint32_t word);

// Greatest and least: a NaN wins, -0 < +0. Written without branches so that loops vectorise.
template <class T> inline T greatest(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    T r = a > b ? a : b;
    r = a == b ? std::bit_cast<T>(std::bit_cast<Bits>(a) & std::bit_cast<Bits>(b)) : r;
    r = b != b ? b : r;
    return a != a ? a : r;
  } else {
    return a > b ? a : b;
  }
}
template <class T> inline T least(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    T r = a < b ? a : b;
    r = a == b ? std::bit_cast<T>(std::bit_cast<Bits>(a) | std::bit_cast<Bits>(b)) : r;
    r = b != b ? b : r;
    return a != a ? a : r;
  } else {
    return a < b ? a : b;
  }
}

template <class T, class F> void map1(int64_t n, void* dst, const void* a, F f) {
  auto* d = static_cast<decltype(f(T{}))*>(dst);
  const T* x = static_cast<const T*>(a);
  for (int64_t i = 0; i < n; ++i) d[i] = f(x[i]);
}
template <class T, class F> void map2(int64_t n, void* dst, const void* a, const void* b, F f) {
  auto* d = static_cast<decltype(f(T{}, T{}))*>(dst);
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  for (int64_t i = 0; i < n; ++i) d[i] = f(x[i], y[i]);
}
// A captureless lambda over scalars becomes an EvalFn.
template <class T, class F> EvalFn unary(F) {
  return [](int64_t n, void* d, const void* a, const void*, const void*) { map1<T>(n, d, a, F{}); };
}
template <class T, class F> EvalFn binary(F) {
  return [](int64_t n, void* d, const void* a, const void* b, const void*) { map2<T>(n, d, a, b, F{}); };
}

}  // namespace tenon::reference
