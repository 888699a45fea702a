// Conversions between element types, bit-exact to the rule of TN_OP_CAST.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pointwise/casts.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/pointwise/block_ops.h"

#include <limits>
#include <type_traits>

#ifndef TENON_CPU_CASTS_ONCE
#define TENON_CPU_CASTS_ONCE
namespace tenon::cpu {
struct Half { uint16_t bits; };
struct Bfloat { uint16_t bits; };
struct Bool { uint8_t bits; };
}  // namespace tenon::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class To, class From>
HWY_INLINE To bits_as(From x) {
  static_assert(sizeof(To) == sizeof(From));
  To y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
HWY_INLINE float half_to_float(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000) << 16, body = uint32_t(h & 0x7FFF) << 13;
  constexpr float kRebias = 0x1p112f;  // makes subnormal halves right as well
  const uint32_t big = body >= 0x0F800000u ? 0x7F800000u | body : bits_as<uint32_t>(bits_as<float>(body) * kRebias);
  return bits_as<float>(big | sign);
}
HWY_INLINE uint16_t float_to_half(float x) {
  const uint32_t u = bits_as<uint32_t>(x), sign = u >> 16 & 0x8000, a = u & 0x7FFFFFFF;
  // Normal results: rebias and round to nearest even in integers; a carry runs into the exponent as it should.
  const uint32_t normal = (a - 0x38000000u + 0xFFFu + (a >> 13 & 1)) >> 13;
  // Subnormal results: the addition of 0.5 leaves the rounded significand in the low bits.
  const uint32_t small = bits_as<uint32_t>(bits_as<float>(a) + 0.5f) - 0x3F000000u;
  uint32_t r = a < 0x38800000u ? small : normal;
  r = a >= 0x477FF000u ? 0x7C00u : r;
  r = a > 0x7F800000u ? 0x7E00u : r;
  return uint16_t(r | sign);
}
HWY_INLINE uint16_t float_to_bfloat(float x) {
  const uint32_t u = bits_as<uint32_t>(x);
  const uint32_t r = (u + 0x7FFFu + (u >> 16 & 1)) >> 16;
  return uint16_t((u & 0x7FFFFFFF) > 0x7F800000u ? (u >> 16 | 0x40) : r);
}
// f64 to f32 with the lost bits in the last place, so that a second rounding to 16 bits is right.
HWY_INLINE float to_odd(double x) {
  const float f = float(x);
  const uint32_t u = bits_as<uint32_t>(f);
  if (double(f) == x || x != x) return f;
  const double a = x < 0 ? -x : x, b = f < 0 ? -double(f) : double(f);
  return bits_as<float>((b > a ? u - 1 : u) | 1);
}
template <class I>
HWY_INLINE double to_odd_f64(I x) {
  const double f = double(x);
  if constexpr (sizeof(I) < 8) return f;
  else {
    if ((x < 0 ? 0 - uint64_t(x) : uint64_t(x)) < uint64_t{1} << 53) return f;
    const bool negative = x < 0;
    const uint64_t a = negative ? 0 - uint64_t(x) : uint64_t(x);
    const int drop = 11 - __builtin_clzll(a);
    const uint64_t kept = a >> drop << drop;
    const double t = double(kept) + 0.0;
    const uint64_t u = bits_as<uint64_t>(t) | (kept != a);
    return negative ? -bits_as<double>(u) : bits_as<double>(u);
  }
}
template <class I, class F>
HWY_INLINE I saturate(F x) {
  constexpr I lo = std::numeric_limits<I>::min(), hi = std::numeric_limits<I>::max();
  constexpr F above = F(hi / 2 + 1) * 2;  // first value past the range, exact in F
  if constexpr (std::is_same_v<F, float> && sizeof(I) == 4 && std::is_signed_v<I>) {
    const I inside = I(x > -above && x < above ? x : F(0));  // selects only, so that the loop is vectorised
    return x >= above ? hi : x <= F(lo) ? lo : inside;
  } else {
    if (x != x) return 0;
    return x >= above ? hi : x <= F(lo) ? lo : I(x);
  }
}

template <class To, class From>
HWY_INLINE To convert(From x) {
  if constexpr (std::is_same_v<To, From>) return x;
  else if constexpr (std::is_same_v<From, Half>) return convert<To>(half_to_float(x.bits));
  else if constexpr (std::is_same_v<From, Bfloat>) return convert<To>(bits_as<float>(uint32_t(x.bits) << 16));
  else if constexpr (std::is_same_v<From, Bool>) return convert<To>(x.bits);
  else if constexpr (std::is_same_v<To, Bool>) return Bool{x != From(0)};
  else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, Bfloat>) {
    float f;
    if constexpr (std::is_same_v<From, float>) f = x;
    else if constexpr (std::is_same_v<From, double>) f = to_odd(x);
    else f = to_odd(to_odd_f64(x));
    if constexpr (std::is_same_v<To, Half>) return Half{float_to_half(f)};
    else return Bfloat{float_to_bfloat(f)};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) return saturate<To>(x);
  else return To(x);
}
template <class From, class To>
void cast_loop(void* dst, const void* a, const void*, const void*, const void*, int64_t n) {
  auto* o = static_cast<To*>(dst);
  auto* x = static_cast<const From*>(a);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = convert<To>(x[i]);
}
template <class From>
BlockFn from_type(uint32_t to) {
  switch (to) {
    case TN_BOOL: return cast_loop<From, Bool>;
    case TN_U8: return cast_loop<From, uint8_t>;
    case TN_I8: return cast_loop<From, int8_t>;
    case TN_U16: return cast_loop<From, uint16_t>;
    case TN_I16: return cast_loop<From, int16_t>;
    case TN_U32: return cast_loop<From, uint32_t>;
    case TN_I32: return cast_loop<From, int32_t>;
    case TN_U64: return cast_loop<From, uint64_t>;
    case TN_I64: return cast_loop<From, int64_t>;
    case TN_F16: return cast_loop<From, Half>;
    case TN_BF16: return cast_loop<From, Bfloat>;
    case TN_F32: return cast_loop<From, float>;
    case TN_F64: return cast_loop<From, double>;
    default: return nullptr;
  }
}
#if HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
void half_to_f32(void* dst, const void* a, const void*, const void*, const void*, int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> dh;
  const int64_t lanes = int64_t(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes)
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(dh, static_cast<const hwy::float16_t*>(a) + i)), d, static_cast<float*>(dst) + i);
}
void f32_to_half(void* dst, const void* a, const void*, const void*, const void*, int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> dh;
  const int64_t lanes = int64_t(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes)
    hn::StoreU(hn::DemoteTo(dh, hn::LoadU(d, static_cast<const float*>(a) + i)), dh, static_cast<hwy::float16_t*>(dst) + i);
}
#endif
BlockFn cast_fn(uint32_t from, uint32_t to) {
#if HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
  if (from == TN_F16 && to == TN_F32) return half_to_f32;
  if (from == TN_F32 && to == TN_F16) return f32_to_half;
#endif
  switch (from) {
    case TN_BOOL: return from_type<Bool>(to);
    case TN_U8: return from_type<uint8_t>(to);
    case TN_I8: return from_type<int8_t>(to);
    case TN_U16: return from_type<uint16_t>(to);
    case TN_I16: return from_type<int16_t>(to);
    case TN_U32: return from_type<uint32_t>(to);
    case TN_I32: return from_type<int32_t>(to);
    case TN_U64: return from_type<uint64_t>(to);
    case TN_I64: return from_type<int64_t>(to);
    case TN_F16: return from_type<Half>(to);
    case TN_BF16: return from_type<Bfloat>(to);
    case TN_F32: return from_type<float>(to);
    case TN_F64: return from_type<double>(to);
    default: return nullptr;
  }
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/isa.h"
namespace tenon::cpu {
BlockFn find_cast(Isa isa, uint32_t from, uint32_t to) { return TENON_CPU_PICK(isa, cast_fn)(from, to); }

}  // namespace tenon::cpu
#endif
