// ops/reference/cast.cpp - one loop per pair of element types.
#include "ops/reference/cast.h"

#include <cstring>
#include <type_traits>

namespace tenon::reference {

double to_odd_double(uint64_t magnitude) {
  const int spare = 11 - std::countl_zero(magnitude | 1);
  if (spare <= 0) return static_cast<double>(magnitude);
  const uint64_t lost = magnitude & ((uint64_t{1} << spare) - 1);
  return std::ldexp(static_cast<double>(magnitude >> spare | (lost != 0)), spare);
}

uint32_t encode(double x, Format f) {
  const uint32_t sign = std::signbit(x) ? 1u << (f.exponent_bits + f.mantissa_bits) : 0;
  const uint32_t top = (1u << f.exponent_bits) - 1;
  const uint32_t infinity = top << f.mantissa_bits;
  if (std::isnan(x)) return sign | (f.has_infinity ? infinity | 1u << (f.mantissa_bits - 1) : (1u << (f.exponent_bits + f.mantissa_bits)) - 1);
  const uint32_t largest = f.has_infinity ? infinity : infinity | ((1u << f.mantissa_bits) - 2);
  if (std::isinf(x)) return sign | largest;
  const double a = std::fabs(x);
  if (a == 0) return sign;
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  int e = std::ilogb(a);
  if (e < 1 - bias) e = 1 - bias;  // subnormals share the smallest exponent's unit
  const double units = std::nearbyint(std::ldexp(a, f.mantissa_bits - e));  // exact scaling, then one rounding
  if (e > bias + 2) return sign | largest;
  // units may reach 2^(mantissa_bits + 1): the carry runs into the exponent, which is the right value.
  const int64_t bits = (static_cast<int64_t>(e + bias - 1) << f.mantissa_bits) + static_cast<int64_t>(units);
  return sign | (bits > static_cast<int64_t>(largest) ? largest : static_cast<uint32_t>(bits));
}

double decode(uint32_t bits, Format f) {
  const uint32_t mantissa = bits & ((1u << f.mantissa_bits) - 1), top = (1u << f.exponent_bits) - 1;
  const uint32_t exponent = bits >> f.mantissa_bits & top;
  const double sign = (bits >> (f.mantissa_bits + f.exponent_bits) & 1) != 0 ? -1.0 : 1.0;
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  if (exponent == top && f.has_infinity)
    return mantissa != 0 ? std::copysign(std::numeric_limits<double>::quiet_NaN(), sign) : sign * std::numeric_limits<double>::infinity();
  if (exponent == top && mantissa == (1u << f.mantissa_bits) - 1) return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - f.mantissa_bits);
  return sign * std::ldexp(mantissa + (1u << f.mantissa_bits), static_cast<int>(exponent) - bias - f.mantissa_bits);
}

namespace {

// Element kinds: `Raw` is what lies in memory; wide() gives the value, narrow() stores one.
struct Bool { uint8_t v; };
struct F16 { uint16_t v; };
struct Bf16 { uint16_t v; };
struct E4m3 { uint8_t v; };
struct E5m2 { uint8_t v; };

template <class T> struct Wide { using type = T; };
template <> struct Wide<Bool> { using type = uint8_t; };
template <> struct Wide<F16> { using type = float; };
template <> struct Wide<Bf16> { using type = float; };
template <> struct Wide<E4m3> { using type = float; };
template <> struct Wide<E5m2> { using type = float; };

template <class T> T wide(T x) { return x; }
inline uint8_t wide(Bool x) { return x.v != 0; }
inline float wide(F16 x) { return f16_to_f32(x.v); }
inline float wide(Bf16 x) { return bf16_to_f32(x.v); }
inline float wide(E4m3 x) { return static_cast<float>(decode(x.v, kE4m3)); }
inline float wide(E5m2 x) { return static_cast<float>(decode(x.v, kE5m2)); }

template <class I, class F> I float_to_int(F x) {
  constexpr F upper = static_cast<F>(std::numeric_limits<I>::max() / 2 + 1) * 2;  // 2^bits: first value above the range
  constexpr F lower = static_cast<F>(std::numeric_limits<I>::min());
  if (x != x) return 0;
  if (x >= upper) return std::numeric_limits<I>::max();
  if (x <= lower) return std::numeric_limits<I>::min();
  return static_cast<I>(x);
}

template <class T> constexpr bool kIsNarrow = std::is_same_v<T, F16> || std::is_same_v<T, Bf16> || std::is_same_v<T, E4m3> || std::is_same_v<T, E5m2>;

template <class To, class X> To to_narrow(X x) {
  double d;
  if constexpr (std::is_integral_v<X>) {
    const bool negative = std::is_signed_v<X> && x < 0;
    const uint64_t magnitude = negative ? uint64_t{0} - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
    d = negative ? -to_odd_double(magnitude) : to_odd_double(magnitude);
  } else {
    if constexpr (std::is_same_v<X, float> && std::is_same_v<To, F16>) return {f32_to_f16(x)};
    if constexpr (std::is_same_v<X, float> && std::is_same_v<To, Bf16>) return {f32_to_bf16(x)};
    d = x;
  }
  if constexpr (std::is_same_v<To, F16>) return {static_cast<uint16_t>(encode(d, kF16))};
  if constexpr (std::is_same_v<To, Bf16>) return {static_cast<uint16_t>(encode(d, kBf16))};
  if constexpr (std::is_same_v<To, E4m3>) return {static_cast<uint8_t>(encode(d, kE4m3))};
  if constexpr (std::is_same_v<To, E5m2>) return {static_cast<uint8_t>(encode(d, kE5m2))};
}

template <class To, class X> To convert(X x) {
  if constexpr (std::is_same_v<To, Bool>) return {static_cast<uint8_t>(x != 0)};
  else if constexpr (kIsNarrow<To>) return to_narrow<To>(x);
  else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<X>) return float_to_int<To>(x);
  else return static_cast<To>(x);
}

template <class From, class To> void cast_loop(int64_t n, void* dst, const void* src) {
  if constexpr (std::is_same_v<From, To>) {
    if (dst != src) std::memmove(dst, src, static_cast<size_t>(n) * sizeof(From));
  } else {
    const From* s = static_cast<const From*>(src);
    To* d = static_cast<To*>(dst);
    for (int64_t i = 0; i < n; ++i) d[i] = convert<To>(wide(s[i]));
  }
}

template <class From> CastFn from_type(uint32_t to) {
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
    case TN_F8E4M3: return cast_loop<From, E4m3>;
    case TN_F8E5M2: return cast_loop<From, E5m2>;
    case TN_F16: return cast_loop<From, F16>;
    case TN_BF16: return cast_loop<From, Bf16>;
    case TN_F32: return cast_loop<From, float>;
    case TN_F64: return cast_loop<From, double>;
    default: return nullptr;
  }
}

}  // namespace

CastFn cast_fn(uint32_t from, uint32_t to) {
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
    case TN_F8E4M3: return from_type<E4m3>(to);
    case TN_F8E5M2: return from_type<E5m2>(to);
    case TN_F16: return from_type<F16>(to);
    case TN_BF16: return from_type<Bf16>(to);
    case TN_F32: return from_type<float>(to);
    case TN_F64: return from_type<double>(to);
    default: return nullptr;
  }
}

double load_f64(const void* p, uint32_t dtype) {
  double x = 0;
  if (CastFn f = cast_fn(dtype, TN_F64)) f(1, &x, p);
  return x;
}
void store_f64(void* p, uint32_t dtype, double x) {
  if (CastFn f = cast_fn(TN_F64, dtype)) f(1, p, &x);
}

}  // namespace tenon::reference
