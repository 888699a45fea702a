// ops/reference/eval_other.cpp - bool logic, SELECT, BITCAST, Philox, and the choice among all of them.
#include "ops/reference/eval.h"

#include <cstring>

namespace tenon::reference {

void philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
  uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]}, k[2] = {key[0], key[1]};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0], p1 = uint64_t{0xCD9E8D57u} * c[2];
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], n2 = static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1];
    c[0] = n0, c[1] = static_cast<uint32_t>(p1), c[2] = n2, c[3] = static_cast<uint32_t>(p0);
    k[0] += 0x9E3779B9u, k[1] += 0xBB67AE85u;
  }
  std::memcpy(out, c, sizeof c);
}

uint32_t philox(uint64_t counter, uint64_t key, uint32_t word) {
  const uint32_t c[4] = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  const uint32_t k[2] = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
  uint32_t out[4];
  philox_block(c, k, out);
  return out[word & 3];
}

namespace {

using B = uint8_t;
EvalFn bool_fn(uint32_t op) {
  switch (op) {
    case TN_OP_AND: case TN_OP_MIN: case TN_OP_MUL: return binary<B>([](B a, B b) { return static_cast<B>((a != 0) & (b != 0)); });
    case TN_OP_OR: case TN_OP_MAX: return binary<B>([](B a, B b) { return static_cast<B>((a != 0) | (b != 0)); });
    case TN_OP_XOR: case TN_OP_NE: return binary<B>([](B a, B b) { return static_cast<B>((a != 0) ^ (b != 0)); });
    case TN_OP_EQ: return binary<B>([](B a, B b) { return static_cast<B>((a != 0) == (b != 0)); });
    case TN_OP_LT: return binary<B>([](B a, B b) { return static_cast<B>((a != 0) < (b != 0)); });
    case TN_OP_LE: return binary<B>([](B a, B b) { return static_cast<B>((a != 0) <= (b != 0)); });
    case TN_OP_NOT: return unary<B>([](B a) { return static_cast<B>(a == 0); });
    case TN_OP_ISNAN: return unary<B>([](B) { return B{0}; });
    default: return nullptr;
  }
}

template <class T> void select_loop(int64_t n, void* dst, const void* a, const void* b, const void* c) {
  const B* when = static_cast<const B*>(a);
  const T *yes = static_cast<const T*>(b), *no = static_cast<const T*>(c);
  for (int64_t i = 0; i < n; ++i) static_cast<T*>(dst)[i] = when[i] != 0 ? yes[i] : no[i];
}
template <uint32_t Bytes> void copy_loop(int64_t n, void* dst, const void* a, const void*, const void*) {
  if (dst != a) std::memmove(dst, a, static_cast<size_t>(n) * Bytes);
}

EvalFn by_size(uint32_t bytes, EvalFn one, EvalFn two, EvalFn four, EvalFn eight) {
  return bytes == 1 ? one : bytes == 2 ? two : bytes == 4 ? four : bytes == 8 ? eight : nullptr;
}

}  // namespace

EvalFn eval_fn(uint32_t op, uint32_t type, uint32_t operand) {
  const uint32_t bytes = dtype_bytes(type);
  if (op == TN_OP_SELECT)
    return by_size(bytes, select_loop<uint8_t>, select_loop<uint16_t>, select_loop<uint32_t>, select_loop<uint64_t>);
  if (op == TN_OP_BITCAST)
    return bytes != dtype_bytes(operand) ? nullptr : by_size(bytes, copy_loop<1>, copy_loop<2>, copy_loop<4>, copy_loop<8>);
  if (operand == TN_BOOL) return bool_fn(op);
  if (operand == TN_F32 || operand == TN_F64) return eval_float_fn(op, operand);
  return eval_int_fn(op, operand);
}

}  // namespace tenon::reference
