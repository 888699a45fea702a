// Opcodes of integers and bool, comparisons and selection of all types: plain loops that the compiler vectorises for
// each target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pointwise/plain_ops.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/pointwise/block_ops.h"

#include <limits>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {

// Integers wrap: arithmetic goes through the unsigned type, at least 32 bits wide so that nothing is promoted to int.
template <class T>
using Wide = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

#define TENON_INT1(name, body) \
  struct name { template <class T> static HWY_INLINE T f(T a) { return static_cast<T>(body); } };
#define TENON_INT2(name, body) \
  struct name { template <class T> static HWY_INLINE T f(T a, T b) { return static_cast<T>(body); } };
#define TENON_TEST2(name, body) \
  struct name { template <class T> static HWY_INLINE uint8_t f(T a, T b) { return body; } };

TENON_INT1(Same, a)
TENON_INT1(Neg, Wide<T>(0) - Wide<T>(a))
TENON_INT1(Abs, a < T(0) ? Wide<T>(0) - Wide<T>(a) : Wide<T>(a))
TENON_INT1(Sign, (a > T(0)) - (a < T(0)))
TENON_INT1(Not, ~a)
TENON_INT1(NotBool, a ^ 1)
TENON_INT2(Add, Wide<T>(a) + Wide<T>(b))
TENON_INT2(Sub, Wide<T>(a) - Wide<T>(b))
TENON_INT2(Mul, Wide<T>(a) * Wide<T>(b))
TENON_INT2(Min, b < a ? b : a)
TENON_INT2(Max, a < b ? b : a)
TENON_INT2(And, a & b)
TENON_INT2(Or, a | b)
TENON_INT2(Xor, a ^ b)
TENON_TEST2(Lt, a < b)
TENON_TEST2(Le, a <= b)
TENON_TEST2(Eq, a == b)
TENON_TEST2(Ne, a != b)

struct Div {
  template <class T> static HWY_INLINE T f(T a, T b) {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1)) return Neg::f(a);
    return T(a / b);
  }
};
struct Rem {
  template <class T> static HWY_INLINE T f(T a, T b) {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1)) return 0;
    return T(a % b);
  }
};
struct Pow {
  template <class T> static HWY_INLINE T f(T a, T b) {
    if constexpr (std::is_signed_v<T>)
      if (b < 0) return a == 1 ? T(1) : a == T(-1) ? ((b & 1) ? T(-1) : T(1)) : T(0);
    Wide<T> r = 1, base = Wide<T>(a);
    for (auto e = std::make_unsigned_t<T>(b); e; e = static_cast<decltype(e)>(e >> 1)) {
      if (e & 1) r *= base;
      base *= base;
    }
    return T(r);
  }
};
struct Shl {
  template <class T> static HWY_INLINE T f(T a, T b) {
    constexpr T kBits = T(8 * sizeof(T));
    const bool inside = b >= T(0) && b < kBits;
    return inside ? T(Wide<T>(a) << (Wide<T>(b) & (8 * sizeof(Wide<T>) - 1))) : T(0);
  }
};
struct Shr {
  template <class T> static HWY_INLINE T f(T a, T b) {
    constexpr T kBits = T(8 * sizeof(T));
    const bool inside = b >= T(0) && b < kBits;
    return inside ? T(a >> (b & (kBits - 1))) : a < T(0) ? T(-1) : T(0);
  }
};

template <class Op, class T>
void int1(void* dst, const void* a, const void*, const void*, const void*, int64_t n) {
  auto* o = static_cast<T*>(dst);
  auto* x = static_cast<const T*>(a);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = Op::f(x[i]);
}
template <class Op, class T>
void int2(void* dst, const void* a, const void* b, const void*, const void*, int64_t n) {
  auto* o = static_cast<T*>(dst);
  auto* x = static_cast<const T*>(a);
  auto* y = static_cast<const T*>(b);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = Op::f(x[i], y[i]);
}
template <class T>
void int_fma(void* dst, const void* a, const void* b, const void* c, const void*, int64_t n) {
  auto* x = static_cast<const T*>(a);
  auto* y = static_cast<const T*>(b);
  auto* z = static_cast<const T*>(c);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) static_cast<T*>(dst)[i] = Add::f(Mul::f(x[i], y[i]), z[i]);
}
template <class Op, class T>
void test2(void* dst, const void* a, const void* b, const void*, const void*, int64_t n) {
  auto* o = static_cast<uint8_t*>(dst);
  auto* x = static_cast<const T*>(a);
  auto* y = static_cast<const T*>(b);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = Op::f(x[i], y[i]);
}
template <class T>
void is_nan(void* dst, const void* a, const void*, const void*, const void*, int64_t n) {
  auto* x = static_cast<const T*>(a);
  for (int64_t i = 0; i < n; ++i) static_cast<uint8_t*>(dst)[i] = x[i] != x[i];
}
template <class U>
void select_bits(void* dst, const void* c, const void* a, const void* b, const void*, int64_t n) {
  auto* o = static_cast<U*>(dst);
  auto* t = static_cast<const uint8_t*>(c);
  auto* x = static_cast<const U*>(a);
  auto* y = static_cast<const U*>(b);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const U yes = x[i], no = y[i];
    o[i] = t[i] ? yes : no;
  }
}

template <class T>
BlockFn compare(uint32_t opcode) {
  switch (opcode) {
    case TN_OP_LT: return test2<Lt, T>;
    case TN_OP_LE: return test2<Le, T>;
    case TN_OP_EQ: return test2<Eq, T>;
    case TN_OP_NE: return test2<Ne, T>;
    case TN_OP_ISNAN: return is_nan<T>;
    default: return nullptr;
  }
}
template <class T>
BlockFn integer(uint32_t opcode) {
  switch (opcode) {
    case TN_OP_NEG: return int1<Neg, T>;
    case TN_OP_ABS: return int1<Abs, T>;
    case TN_OP_SIGN: return int1<Sign, T>;
    case TN_OP_FLOOR: case TN_OP_CEIL: case TN_OP_TRUNC: case TN_OP_RINT: return int1<Same, T>;
    case TN_OP_NOT: return int1<Not, T>;
    case TN_OP_ADD: return int2<Add, T>;
    case TN_OP_SUB: return int2<Sub, T>;
    case TN_OP_MUL: return int2<Mul, T>;
    case TN_OP_DIV: return int2<Div, T>;
    case TN_OP_REM: return int2<Rem, T>;
    case TN_OP_POW: return int2<Pow, T>;
    case TN_OP_MIN: return int2<Min, T>;
    case TN_OP_MAX: return int2<Max, T>;
    case TN_OP_FMA: return int_fma<T>;
    case TN_OP_AND: return int2<And, T>;
    case TN_OP_OR: return int2<Or, T>;
    case TN_OP_XOR: return int2<Xor, T>;
    case TN_OP_SHL: return int2<Shl, T>;
    case TN_OP_SHR: return int2<Shr, T>;
    default: return compare<T>(opcode);
  }
}
BlockFn boolean(uint32_t opcode) {
  switch (opcode) {
    case TN_OP_NOT: return int1<NotBool, uint8_t>;
    case TN_OP_AND: case TN_OP_MIN: return int2<And, uint8_t>;
    case TN_OP_OR: case TN_OP_MAX: return int2<Or, uint8_t>;
    case TN_OP_XOR: return int2<Xor, uint8_t>;
    default: return compare<uint8_t>(opcode);
  }
}
BlockFn plain_op(uint32_t opcode, uint32_t dtype) {
  if (opcode == TN_OP_SELECT) {
    switch (element_size(dtype)) {
      case 1: return select_bits<uint8_t>;
      case 2: return select_bits<uint16_t>;
      case 4: return select_bits<uint32_t>;
      case 8: return select_bits<uint64_t>;
      default: return nullptr;
    }
  }
  switch (dtype) {
    case TN_BOOL: return boolean(opcode);
    case TN_U8: return integer<uint8_t>(opcode);
    case TN_I8: return integer<int8_t>(opcode);
    case TN_U16: return integer<uint16_t>(opcode);
    case TN_I16: return integer<int16_t>(opcode);
    case TN_U32: return integer<uint32_t>(opcode);
    case TN_I32: return integer<int32_t>(opcode);
    case TN_U64: return integer<uint64_t>(opcode);
    case TN_I64: return integer<int64_t>(opcode);
    case TN_F32: return compare<float>(opcode);
    case TN_F64: return compare<double>(opcode);
    default: return nullptr;
  }
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/isa.h"
namespace tenon::cpu {
BlockFn find_plain_op(Isa isa, uint32_t opcode, uint32_t dtype) { return TENON_CPU_PICK(isa, plain_op)(opcode, dtype); }
}  // namespace tenon::cpu
#endif
