// ops/reference/eval_int.cpp - opcodes over the 8- to 64-bit integers: two's complement, wrapping, never undefined.
#include "ops/reference/eval.h"

namespace tenon::reference {
namespace {

// Arithmetic in an unsigned type at least as wide as unsigned int: wraps without signed overflow or promotion surprises.
template <class T> using Wrap = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

template <class T> T divide(T a, T b) {
  if (b == 0) return 0;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(Wrap<T>(0) - Wrap<T>(a));  // least / -1 = least
  return static_cast<T>(a / b);
}
template <class T> T remainder(T a, T b) {
  if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
  return static_cast<T>(a % b);
}
template <class T> T power(T a, T b) {
  if (std::is_signed_v<T> && b < 0) {  // 1 / a^|b|, toward zero
    if (a == 1) return 1;
    return a == static_cast<T>(-1) ? static_cast<T>((b & 1) != 0 ? -1 : 1) : T(0);
  }
  Wrap<T> result = 1, base = static_cast<Wrap<T>>(a);
  for (auto e = static_cast<std::make_unsigned_t<T>>(b); e != 0; e = static_cast<std::make_unsigned_t<T>>(e >> 1)) {
    if ((e & 1) != 0) result *= base;
    base *= base;
  }
  return static_cast<T>(result);
}
template <class T> bool outside(T shift) { return shift < 0 || static_cast<uint64_t>(shift) >= sizeof(T) * 8; }
template <class T> T shift_left(T a, T b) { return outside(b) ? T(0) : static_cast<T>(static_cast<Wrap<T>>(a) << b); }
template <class T> T shift_right(T a, T b) {
  if (outside(b)) return std::is_signed_v<T> && a < 0 ? static_cast<T>(-1) : T(0);
  return static_cast<T>(a >> b);
}

template <class T> EvalFn one_operand(uint32_t op) {
  switch (op) {
    case TN_OP_NEG: return unary<T>([](T x) { return static_cast<T>(Wrap<T>(0) - static_cast<Wrap<T>>(x)); });
    case TN_OP_ABS: return unary<T>([](T x) { return x < 0 ? static_cast<T>(Wrap<T>(0) - static_cast<Wrap<T>>(x)) : x; });
    case TN_OP_SIGN: return unary<T>([](T x) { return static_cast<T>((x > 0) - (x < 0)); });
    case TN_OP_FLOOR: case TN_OP_CEIL: case TN_OP_TRUNC: case TN_OP_RINT: return unary<T>([](T x) { return x; });
    case TN_OP_ISNAN: return unary<T>([](T) { return uint8_t{0}; });
    case TN_OP_NOT: return unary<T>([](T x) { return static_cast<T>(~x); });
    default: return nullptr;
  }
}

template <class T> EvalFn two_operands(uint32_t op) {
  using W = Wrap<T>;
  switch (op) {
    case TN_OP_ADD: return binary<T>([](T a, T b) { return static_cast<T>(static_cast<W>(a) + static_cast<W>(b)); });
    case TN_OP_SUB: return binary<T>([](T a, T b) { return static_cast<T>(static_cast<W>(a) - static_cast<W>(b)); });
    case TN_OP_MUL: return binary<T>([](T a, T b) { return static_cast<T>(static_cast<W>(a) * static_cast<W>(b)); });
    case TN_OP_DIV: return binary<T>([](T a, T b) { return divide(a, b); });
    case TN_OP_REM: return binary<T>([](T a, T b) { return remainder(a, b); });
    case TN_OP_POW: return binary<T>([](T a, T b) { return power(a, b); });
    case TN_OP_MIN: return binary<T>([](T a, T b) { return least(a, b); });
    case TN_OP_MAX: return binary<T>([](T a, T b) { return greatest(a, b); });
    case TN_OP_LT: return binary<T>([](T a, T b) { return static_cast<uint8_t>(a < b); });
    case TN_OP_LE: return binary<T>([](T a, T b) { return static_cast<uint8_t>(a <= b); });
    case TN_OP_EQ: return binary<T>([](T a, T b) { return static_cast<uint8_t>(a == b); });
    case TN_OP_NE: return binary<T>([](T a, T b) { return static_cast<uint8_t>(a != b); });
    case TN_OP_AND: return binary<T>([](T a, T b) { return static_cast<T>(a & b); });
    case TN_OP_OR: return binary<T>([](T a, T b) { return static_cast<T>(a | b); });
    case TN_OP_XOR: return binary<T>([](T a, T b) { return static_cast<T>(a ^ b); });
    case TN_OP_SHL: return binary<T>([](T a, T b) { return shift_left(a, b); });
    case TN_OP_SHR: return binary<T>([](T a, T b) { return shift_right(a, b); });
    default: return nullptr;
  }
}

template <class T> EvalFn any_of(uint32_t op) {
  if (op == TN_OP_FMA)
    return [](int64_t n, void* dst, const void* a, const void* b, const void* c) {
      const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b), *z = static_cast<const T*>(c);
      for (int64_t i = 0; i < n; ++i)
        static_cast<T*>(dst)[i] = static_cast<T>(static_cast<Wrap<T>>(x[i]) * static_cast<Wrap<T>>(y[i]) + static_cast<Wrap<T>>(z[i]));
    };
  EvalFn f = one_operand<T>(op);
  return f != nullptr ? f : two_operands<T>(op);
}

}  // namespace

EvalFn eval_int_fn(uint32_t op, uint32_t operand) {
  switch (operand) {
    case TN_U8: return any_of<uint8_t>(op);
    case TN_I8: return any_of<int8_t>(op);
    case TN_U16: return any_of<uint16_t>(op);
    case TN_I16: return any_of<int16_t>(op);
    case TN_U32: return any_of<uint32_t>(op);
    case TN_I32: return any_of<int32_t>(op);
    case TN_U64: return any_of<uint64_t>(op);
    case TN_I64: return any_of<int64_t>(op);
    default: return nullptr;
  }
}

}  // namespace tenon::reference
