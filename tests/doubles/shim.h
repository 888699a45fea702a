// tests/doubles/shim.h - CUDA's and HIP's device language for a host compiler, as far as kernel texts use it. Included before a
// rendered text, so it declares nothing that the run-time compilers do not declare by themselves.
#pragma once
#include "device_abi.h"

extern "C" { inline __attribute__((visibility("hidden"))) TenonDevice* tenon_device = nullptr; }

#define threadIdx (tenon_device->thread)
#define blockIdx (tenon_device->block)
#define blockDim (tenon_device->block_dim)
#define gridDim (tenon_device->grid_dim)
#define warpSize (static_cast<int>(tenon_device->warp_size))

#define __host__
#define __device__
#define __global__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
// One section for all local memory of the text: the scheduler spoils it before each block. Blocks run one at a time.
#define __shared__ static __attribute__((section("tenon_shared")))

// ---- vectors
#define TENON_VECTORS(T, name, align2, align4) \
  struct name##1 { T x; }; \
  struct __attribute__((aligned(align2))) name##2 { T x, y; }; \
  struct name##3 { T x, y, z; }; \
  struct __attribute__((aligned(align4))) name##4 { T x, y, z, w; }; \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; } \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
TENON_VECTORS(signed char, char, 2, 4)
TENON_VECTORS(unsigned char, uchar, 2, 4)
TENON_VECTORS(short, short, 4, 8)
TENON_VECTORS(unsigned short, ushort, 4, 8)
TENON_VECTORS(int, int, 8, 16)
TENON_VECTORS(unsigned, uint, 8, 16)
TENON_VECTORS(long long, longlong, 16, 16)
TENON_VECTORS(unsigned long long, ulonglong, 16, 16)
TENON_VECTORS(float, float, 8, 16)
TENON_VECTORS(double, double, 16, 16)
#undef TENON_VECTORS
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

// ---- meetings
inline void __syncthreads() { tenon_device->barrier(); }
inline int __syncthreads_or(int predicate) {
  __shared__ int any;
  if (tenon_device->thread.x + tenon_device->thread.y + tenon_device->thread.z == 0) any = 0;
  __syncthreads();
  if (predicate) any = 1;
  __syncthreads();
  const int result = any;
  __syncthreads();
  return result;
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __syncwarp(unsigned = 0xFFFFFFFFu) { const unsigned long long* values; tenon_device->exchange(0, &values); }

template <class T> inline unsigned long long tenon_bits(T value) { unsigned long long bits = 0; __builtin_memcpy(&bits, &value, sizeof value); return bits; }
// What lane `source` shows; its own value where that lane lies outside the section of `width` lanes.
template <class T> inline T tenon_shuffle(T mine, unsigned source, bool inside) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  const unsigned long long* values;
  tenon_device->exchange(tenon_bits(mine), &values);
  T result = mine;
  if (inside && source < tenon_device->warp_size) __builtin_memcpy(&result, &values[source], sizeof result);
  return result;
}
template <class T> inline T tenon_shfl(T v, int lane, int width) {
  const unsigned w = static_cast<unsigned>(width), first = tenon_device->lane / w * w;
  return tenon_shuffle(v, first + static_cast<unsigned>(lane) % w, true);
}
template <class T> inline T tenon_shfl_xor(T v, int mask, int width) {
  const unsigned w = static_cast<unsigned>(width), first = tenon_device->lane / w * w, source = tenon_device->lane ^ static_cast<unsigned>(mask);
  return tenon_shuffle(v, source, source < first + w);
}
template <class T> inline T tenon_shfl_up(T v, unsigned delta, int width) {
  const unsigned w = static_cast<unsigned>(width), first = tenon_device->lane / w * w;
  return tenon_shuffle(v, tenon_device->lane - delta, tenon_device->lane >= first + delta);
}
template <class T> inline T tenon_shfl_down(T v, unsigned delta, int width) {
  const unsigned w = static_cast<unsigned>(width), first = tenon_device->lane / w * w, source = tenon_device->lane + delta;
  return tenon_shuffle(v, source, source < first + w);
}
inline unsigned long long tenon_ballot(int predicate) {
  const unsigned long long* values;
  const unsigned long long present = tenon_device->exchange(predicate != 0, &values);
  unsigned long long mask = 0;
  for (unsigned i = 0; i < tenon_device->warp_size; ++i) mask |= (present >> i & 1) != 0 && values[i] == 1 ? 1ull << i : 0;
  return mask;
}
template <class T> inline T __shfl_sync(unsigned, T v, int lane, int width = warpSize) { return tenon_shfl(v, lane, width); }
template <class T> inline T __shfl_xor_sync(unsigned, T v, int mask, int width = warpSize) { return tenon_shfl_xor(v, mask, width); }
template <class T> inline T __shfl_up_sync(unsigned, T v, unsigned delta, int width = warpSize) { return tenon_shfl_up(v, delta, width); }
template <class T> inline T __shfl_down_sync(unsigned, T v, unsigned delta, int width = warpSize) { return tenon_shfl_down(v, delta, width); }
inline unsigned __ballot_sync(unsigned, int predicate) { return static_cast<unsigned>(tenon_ballot(predicate)); }
inline int __any_sync(unsigned, int predicate) { return tenon_ballot(predicate) != 0; }
inline int __all_sync(unsigned, int predicate) { return tenon_ballot(!predicate) == 0; }
template <class T> inline T __shfl(T v, int lane, int width = warpSize) { return tenon_shfl(v, lane, width); }
template <class T> inline T __shfl_xor(T v, int mask, int width = warpSize) { return tenon_shfl_xor(v, mask, width); }
template <class T> inline T __shfl_up(T v, unsigned delta, int width = warpSize) { return tenon_shfl_up(v, delta, width); }
template <class T> inline T __shfl_down(T v, unsigned delta, int width = warpSize) { return tenon_shfl_down(v, delta, width); }
inline unsigned long long __ballot(int predicate) { return tenon_ballot(predicate); }
inline int __any(int predicate) { return tenon_ballot(predicate) != 0; }
inline int __all(int predicate) { return tenon_ballot(!predicate) == 0; }

// ---- atomics: threads take turns only where they meet, so plain reads and writes are whole
template <class T> struct TenonSame { using Type = T; };
#define TENON_ATOMIC(name, expression) \
  template <class T> inline T name(T* at, typename TenonSame<T>::Type value) { const T old = *at; *at = static_cast<T>(expression); return old; }
TENON_ATOMIC(atomicAdd, old + value)
TENON_ATOMIC(atomicSub, old - value)
TENON_ATOMIC(atomicMin, value < old ? value : old)
TENON_ATOMIC(atomicMax, old < value ? value : old)
TENON_ATOMIC(atomicExch, value)
TENON_ATOMIC(atomicAnd, old & value)
TENON_ATOMIC(atomicOr, old | value)
TENON_ATOMIC(atomicXor, old ^ value)
#undef TENON_ATOMIC
template <class T> inline T atomicCAS(T* at, typename TenonSame<T>::Type expected, typename TenonSame<T>::Type value) {
  const T old = *at;
  if (tenon_bits(old) == tenon_bits(expected)) *at = value;
  return old;
}

// ---- bits
template <class To, class From> inline To tenon_as(From value) { To to; static_assert(sizeof to == sizeof value, ""); __builtin_memcpy(&to, &value, sizeof to); return to; }
inline int __float_as_int(float v) { return tenon_as<int>(v); }
inline unsigned __float_as_uint(float v) { return tenon_as<unsigned>(v); }
inline float __int_as_float(int v) { return tenon_as<float>(v); }
inline float __uint_as_float(unsigned v) { return tenon_as<float>(v); }
inline long long __double_as_longlong(double v) { return tenon_as<long long>(v); }
inline double __longlong_as_double(long long v) { return tenon_as<double>(v); }
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __clz(int v) { return v == 0 ? 32 : __builtin_clz(static_cast<unsigned>(v)); }
inline int __clzll(long long v) { return v == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(v)); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32); }
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64); }
inline long long __mul64hi(long long a, long long b) { return static_cast<long long>(static_cast<__int128>(a) * b >> 64); }

// ---- mathematics: the host's functions, which are at least as exact as the device's
#define TENON_MATH1(name) \
  extern "C" float name##f(float) noexcept; \
  extern "C" double name(double) noexcept; \
  inline float name(float x) noexcept { return name##f(x); }
TENON_MATH1(sqrt) TENON_MATH1(exp) TENON_MATH1(exp2) TENON_MATH1(expm1) TENON_MATH1(log) TENON_MATH1(log2) TENON_MATH1(log10) TENON_MATH1(log1p) TENON_MATH1(sin) TENON_MATH1(cos)
TENON_MATH1(tan) TENON_MATH1(asin) TENON_MATH1(acos) TENON_MATH1(atan) TENON_MATH1(sinh) TENON_MATH1(cosh) TENON_MATH1(tanh) TENON_MATH1(erf) TENON_MATH1(erfc) TENON_MATH1(floor)
TENON_MATH1(ceil) TENON_MATH1(trunc) TENON_MATH1(rint) TENON_MATH1(nearbyint) TENON_MATH1(round) TENON_MATH1(fabs) TENON_MATH1(cbrt)
#define TENON_MATH2(name) \
  extern "C" float name##f(float, float) noexcept; \
  extern "C" double name(double, double) noexcept; \
  inline float name(float x, float y) noexcept { return name##f(x, y); }
TENON_MATH2(pow) TENON_MATH2(fmod) TENON_MATH2(atan2) TENON_MATH2(fmin) TENON_MATH2(fmax) TENON_MATH2(copysign) TENON_MATH2(hypot) TENON_MATH2(remainder)
extern "C" float fmaf(float, float, float) noexcept;
extern "C" double fma(double, double, double) noexcept;
inline float fma(float a, float b, float c) noexcept { return fmaf(a, b, c); }
extern "C" float ldexpf(float, int) noexcept;
extern "C" double ldexp(double, int) noexcept;
inline float ldexp(float x, int e) noexcept { return ldexpf(x, e); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isnan(double x) { return __builtin_isnan(x); }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool signbit(float x) { return __builtin_signbitf(x) != 0; }
inline bool signbit(double x) { return __builtin_signbit(x) != 0; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
#define TENON_MIN_MAX(T) \
  inline T min(T a, T b) { return b < a ? b : a; } \
  inline T max(T a, T b) { return a < b ? b : a; }
TENON_MIN_MAX(int) TENON_MIN_MAX(unsigned) TENON_MIN_MAX(long) TENON_MIN_MAX(unsigned long) TENON_MIN_MAX(long long) TENON_MIN_MAX(unsigned long long)
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline int abs(int v) { return v < 0 ? -v : v; }
inline long long llabs(long long v) { return v < 0 ? -v : v; }

// ---- how the double calls a kernel: its arguments' types are known to the compiler only
template <class T> struct TenonPlain { using Type = T; };
template <class T> struct TenonPlain<const T> { using Type = T; };
template <unsigned long... I> struct TenonNumbers {};
template <class... A> struct TenonCall {
  static constexpr unsigned bytes[sizeof...(A) + 1] = {sizeof(A)..., 0};
  template <unsigned long... I> static void with(void (*kernel)(A...), void** arguments, TenonNumbers<I...>) {
    kernel(*static_cast<typename TenonPlain<A>::Type*>(arguments[I])...);
  }
  static void run(void (*kernel)(A...), void** arguments) { with(kernel, arguments, TenonNumbers<__integer_pack(sizeof...(A))...>{}); }
};
template <class... A> inline TenonCall<A...> tenon_call_of(void (*)(A...)) { return {}; }
template <class... A> inline void tenon_run(void (*kernel)(A...), void** arguments) { TenonCall<A...>::run(kernel, arguments); }
template <class... A> constexpr unsigned tenon_count(void (*)(A...)) { return sizeof...(A); }
constexpr unsigned tenon_first(unsigned first, ...) { return first; }

extern "C" { extern char __start_tenon_shared[] __attribute__((visibility("hidden"))), __stop_tenon_shared[] __attribute__((visibility("hidden"))); }
// So that the section exists in texts without local memory.
static __attribute__((section("tenon_shared"), used)) char tenon_shared_guard[16];

#define TENON_EXPORT_KERNEL(name, ...) \
  extern "C" void tenon_thunk_##name(void** arguments) { tenon_run(&name, arguments); } \
  extern "C" __attribute__((visibility("default"))) const TenonKernel tenon_kernel_##name; \
  const TenonKernel tenon_kernel_##name = {&tenon_thunk_##name, tenon_count(&name), tenon_first(__VA_ARGS__), decltype(tenon_call_of(&name))::bytes, &tenon_device, __start_tenon_shared, __stop_tenon_shared};
