// Opcodes of f32 and f64 on Highway vectors.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pointwise/float_ops.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/pointwise/block_ops.h"
#include "backends/cpu/pointwise/math-inl.h"
#include "hwy/cache_control.h"

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {

#define TENON_OP1(name, body) \
  struct name { template <class D, class V> static HWY_INLINE V f([[maybe_unused]] D d, V a) { return body; } };
#define TENON_OP2(name, body) \
  struct name { template <class D, class V> static HWY_INLINE V f([[maybe_unused]] D d, V a, V b) { return body; } };

TENON_OP1(Neg, hn::Xor(a, hn::SignBit(d)))
TENON_OP1(Abs, hn::Abs(a))
TENON_OP1(Sqrt, hn::Sqrt(a))
TENON_OP1(Rsqrt, hn::Div(hn::Set(d, hn::TFromV<V>(1)), hn::Sqrt(a)))
TENON_OP1(Sign, keep_nan(a, hn::IfThenElse(hn::Eq(a, hn::Zero(d)), a, hn::CopySign(hn::Set(d, hn::TFromV<V>(1)), a))))
TENON_OP1(Exp, vexp(d, a))
TENON_OP1(Expm1, vexpm1(d, a))
TENON_OP1(Log, vlog(d, a))
TENON_OP1(Log1p, vlog1p(d, a))
TENON_OP1(Tanh, vtanh(d, a))
TENON_OP1(Erf, verf(d, a))
TENON_OP1(Atan, vatan(d, a))
TENON_OP2(Add, hn::Add(a, b))
TENON_OP2(Sub, hn::Sub(a, b))
TENON_OP2(Rsub, hn::Sub(b, a))
TENON_OP2(Mul, hn::Mul(a, b))
TENON_OP2(Div, hn::Div(a, b))
// Equal operands meet in the bits, which orders -0 below +0; a NaN comes through from either side.
TENON_OP2(Max, keep_nan(a, keep_nan(b, hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), hn::IfThenElse(hn::Gt(a, b), a, b)))))
TENON_OP2(Min, keep_nan(a, keep_nan(b, hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), hn::IfThenElse(hn::Lt(a, b), a, b)))))
#if TENON_CPU_EMULATED
// The emulation's rounding goes through integers; libm's keeps large values and the sign of zero.
#define TENON_ROUND(name, fn)                                                                                        \
  struct name {                                                                                                      \
    template <class D, class V> static HWY_INLINE V f(D d, V a) {                                                    \
      hn::TFromD<D> t[16];                                                                                           \
      hn::StoreU(a, d, t);                                                                                           \
      for (size_t i = 0; i < hn::Lanes(d); ++i) t[i] = fn(t[i]);                                                     \
      return hn::LoadU(d, t);                                                                                        \
    }                                                                                                                \
  };
TENON_ROUND(Floor, std::floor)
TENON_ROUND(Ceil, std::ceil)
TENON_ROUND(Trunc, std::trunc)
TENON_ROUND(Rint, std::nearbyint)
#else
TENON_OP1(Floor, hn::Floor(a))
TENON_OP1(Ceil, hn::Ceil(a))
TENON_OP1(Trunc, hn::Trunc(a))
TENON_OP1(Rint, hn::Round(a))
#endif

template <class Op, class T>
void map1(void* dst, const void* a, const void*, const void*, const void*, int64_t n) {
  const hn::ScalableTag<T> d;
  auto* o = static_cast<T*>(dst);
  auto* x = static_cast<const T*>(a);
  const int64_t lanes = int64_t(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) hn::StoreU(Op::f(d, hn::LoadU(d, x + i)), d, o + i);
}
template <class Op, class T>
void map2(void* dst, const void* a, const void* b, const void*, const void*, int64_t n) {
  const hn::ScalableTag<T> d;
  auto* o = static_cast<T*>(dst);
  auto* x = static_cast<const T*>(a);
  auto* y = static_cast<const T*>(b);
  const int64_t lanes = int64_t(hn::Lanes(d));
#pragma GCC unroll 4
  for (int64_t i = 0; i < n; i += lanes) hn::StoreU(Op::f(d, hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, o + i);
}
template <class Op1, class Op2, class T>
void map_pair(void* dst, const void* a, const void* b, const void* c, const void*, int64_t n) {
  const hn::ScalableTag<T> d;
  auto* o = static_cast<T*>(dst);
  auto* x = static_cast<const T*>(a);
  auto* y = static_cast<const T*>(b);
  auto* z = static_cast<const T*>(c);
  const int64_t lanes = int64_t(hn::Lanes(d));
#pragma GCC unroll 4
  for (int64_t i = 0; i < n; i += lanes)
    hn::StoreU(Op2::f(d, Op1::f(d, hn::LoadU(d, x + i), hn::LoadU(d, y + i)), hn::LoadU(d, z + i)), d, o + i);
}
struct Lt { template <class V> static HWY_INLINE auto f(V a, V b) { return hn::Lt(a, b); } };
struct Le { template <class V> static HWY_INLINE auto f(V a, V b) { return hn::Le(a, b); } };
struct Eq { template <class V> static HWY_INLINE auto f(V a, V b) { return hn::Eq(a, b); } };
// Highway compares for order: a NaN is not unequal to it.
struct Ne { template <class V> static HWY_INLINE auto f(V a, V b) { return hn::Not(hn::Eq(a, b)); } };
template <class Cmp>
void compare_select(void* dst, const void* a, const void* b, const void* c, const void* e, int64_t n) {
  const hn::ScalableTag<float> d;
  auto* o = static_cast<float*>(dst);
  auto* x = static_cast<const float*>(a);
  auto* y = static_cast<const float*>(b);
  auto* p = static_cast<const float*>(c);
  auto* q = static_cast<const float*>(e);
  const int64_t lanes = int64_t(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes)
    hn::StoreU(hn::IfThenElse(Cmp::f(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), hn::LoadU(d, p + i), hn::LoadU(d, q + i)), d, o + i);
}
template <int kPhase>
void trig_f32(void* dst, const void* a, const void*, const void*, const void*, int64_t n) {
  const hn::ScalableTag<float> d;
  auto* o = static_cast<float*>(dst);
  auto* x = static_cast<const float*>(a);
  const int64_t lanes = int64_t(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    hn::StoreU(sin_or_cos(d, v, kPhase), d, o + i);
    const auto big = hn::Ge(hn::Abs(v), hn::Set(d, 1e5f));
    if (HWY_LIKELY(hn::AllFalse(d, big))) continue;
    float lane[HWY_MAX_BYTES / sizeof(float)];  // dst may be the operand
    hn::StoreU(v, d, lane);
    for (int64_t j = 0; j < lanes; ++j)
      if (std::fabs(lane[j]) >= 1e5f) o[i + j] = kPhase ? float(std::cos(double(lane[j]))) : float(std::sin(double(lane[j])));
  }
}
template <class T>
void fma_op(void* dst, const void* a, const void* b, const void* c, const void*, int64_t n) {
  auto* o = static_cast<T*>(dst);
  auto* x = static_cast<const T*>(a);
  auto* y = static_cast<const T*>(b);
  auto* z = static_cast<const T*>(c);
#if TENON_CPU_EMULATED
  for (int64_t i = 0; i < n; ++i) o[i] = std::fma(x[i], y[i], z[i]);
#else
  const hn::ScalableTag<T> d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes)
    hn::StoreU(hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), hn::LoadU(d, z + i)), d, o + i);
#endif
}

template <class T>
BlockFn simple_op(uint32_t opcode) {
  switch (opcode) {
    case TN_OP_NEG: return map1<Neg, T>;
    case TN_OP_ABS: return map1<Abs, T>;
    case TN_OP_SIGN: return map1<Sign, T>;
    case TN_OP_FLOOR: return map1<Floor, T>;
    case TN_OP_CEIL: return map1<Ceil, T>;
    case TN_OP_TRUNC: return map1<Trunc, T>;
    case TN_OP_RINT: return map1<Rint, T>;
    case TN_OP_SQRT: return map1<Sqrt, T>;
    case TN_OP_RSQRT: return map1<Rsqrt, T>;
    case TN_OP_ADD: return map2<Add, T>;
    case TN_OP_SUB: return map2<Sub, T>;
    case TN_OP_MUL: return map2<Mul, T>;
    case TN_OP_DIV: return map2<Div, T>;
    case TN_OP_MIN: return map2<Min, T>;
    case TN_OP_MAX: return map2<Max, T>;
    case TN_OP_FMA: return fma_op<T>;
    default: return nullptr;
  }
}
BlockFn f32_op(uint32_t opcode) {
  switch (opcode) {
    case TN_OP_EXP: return map1<Exp, float>;
    case TN_OP_EXPM1: return map1<Expm1, float>;
    case TN_OP_LOG: return map1<Log, float>;
    case TN_OP_LOG1P: return map1<Log1p, float>;
    case TN_OP_SIN: return trig_f32<0>;
    case TN_OP_COS: return trig_f32<1>;
    case TN_OP_ATAN: return map1<Atan, float>;
    case TN_OP_TANH: return map1<Tanh, float>;
    case TN_OP_ERF: return map1<Erf, float>;
    default: return simple_op<float>(opcode);
  }
}
BlockFn f64_op(uint32_t opcode) { return simple_op<double>(opcode); }

template <class Op1>
BlockFn pair_second(uint32_t second, bool swapped) {
  switch (second) {
    case TN_OP_ADD: return map_pair<Op1, Add, float>;
    case TN_OP_SUB: return swapped ? map_pair<Op1, Rsub, float> : map_pair<Op1, Sub, float>;
    case TN_OP_MUL: return map_pair<Op1, Mul, float>;
    default: return nullptr;
  }
}
BlockFn pair_op(uint32_t first, uint32_t second, bool swapped) {
  switch (first) {
    case TN_OP_ADD: return pair_second<Add>(second, swapped);
    case TN_OP_SUB: return pair_second<Sub>(second, swapped);
    case TN_OP_MUL: return pair_second<Mul>(second, swapped);
    default: return nullptr;
  }
}
BlockFn compare_op(uint32_t compare) {
  switch (compare) {
    case TN_OP_LT: return compare_select<Lt>;
    case TN_OP_LE: return compare_select<Le>;
    case TN_OP_EQ: return compare_select<Eq>;
    case TN_OP_NE: return compare_select<Ne>;
    default: return nullptr;
  }
}
void stream_bytes(void* dst, const void* src, int64_t bytes) {
  const hn::ScalableTag<float> d;
  auto* o = static_cast<float*>(dst);
  auto* x = static_cast<const float*>(src);
  const int64_t n = bytes / 4, lanes = int64_t(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) hn::Stream(hn::LoadU(d, x + i), d, o + i);
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/isa.h"
namespace tenon::cpu {
namespace {

template <class T, T (*F)(T)>
void libm1(void* dst, const void* a, const void*, const void*, const void*, int64_t n) {
  for (int64_t i = 0; i < n; ++i) static_cast<T*>(dst)[i] = F(static_cast<const T*>(a)[i]);
}
template <class T, T (*F)(T, T)>
void libm2(void* dst, const void* a, const void* b, const void*, const void*, int64_t n) {
  for (int64_t i = 0; i < n; ++i) static_cast<T*>(dst)[i] = F(static_cast<const T*>(a)[i], static_cast<const T*>(b)[i]);
}
// The C library is within the error table for f64, and for the f32 functions that have no vector code.
template <class T>
BlockFn libm_op(uint32_t opcode) {
  switch (opcode) {
    case TN_OP_EXP: return libm1<T, std::exp>;
    case TN_OP_EXPM1: return libm1<T, std::expm1>;
    case TN_OP_LOG: return libm1<T, std::log>;
    case TN_OP_LOG1P: return libm1<T, std::log1p>;
    case TN_OP_SIN: return libm1<T, std::sin>;
    case TN_OP_COS: return libm1<T, std::cos>;
    case TN_OP_ATAN: return libm1<T, std::atan>;
    case TN_OP_TANH: return libm1<T, std::tanh>;
    case TN_OP_ERF: return libm1<T, std::erf>;
    case TN_OP_REM: return libm2<T, std::fmod>;
    case TN_OP_POW: return libm2<T, std::pow>;
    case TN_OP_ATAN2: return libm2<T, std::atan2>;
    default: return nullptr;
  }
}

}  // namespace

BlockFn find_float_op(Isa isa, uint32_t opcode, uint32_t dtype) {
  if (dtype == TN_F32) {
    BlockFn f = TENON_CPU_PICK(isa, f32_op)(opcode);
    return f ? f : libm_op<float>(opcode);
  }
  if (dtype != TN_F64) return nullptr;
  BlockFn f = TENON_CPU_PICK(isa, f64_op)(opcode);
  return f ? f : libm_op<double>(opcode);
}
BlockFn find_pair(Isa isa, uint32_t first, uint32_t second, bool swapped) { return TENON_CPU_PICK(isa, pair_op)(first, second, swapped); }
BlockFn find_compare_select(Isa isa, uint32_t compare) { return TENON_CPU_PICK(isa, compare_op)(compare); }
void stream_copy(Isa isa, void* dst, const void* src, int64_t bytes) { TENON_CPU_PICK(isa, stream_bytes)(dst, src, bytes); }
void stream_fence() { hwy::FlushStream(); }

}  // namespace tenon::cpu
#endif
