#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/reduce/fold.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/reduce/fold.h"

#include <limits>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {

// Largest and smallest with the rules of TN_OP_MAX and TN_OP_MIN: a NaN wins, -0 lies below +0.
template <class T>
HWY_INLINE bool signbit_of(T x) {
  if constexpr (sizeof(T) == 4) { uint32_t u; __builtin_memcpy(&u, &x, 4); return u >> 31; }
  else { uint64_t u; __builtin_memcpy(&u, &x, 8); return u >> 63; }
}
struct Max {
  template <class T> static constexpr T identity() { return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest(); }
  template <class T> static HWY_INLINE T f(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      T r = a > b ? a : b;
      r = a == b && signbit_of(b) ? a : r;
      return a != a ? a : r;  // b's NaN has come through the first line
    } else return a < b ? b : a;
  }
};
struct Min {
  template <class T> static constexpr T identity() { return std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max(); }
  template <class T> static HWY_INLINE T f(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      T r = a < b ? a : b;
      r = a == b && !signbit_of(b) ? a : r;
      return a != a ? a : r;
    } else return b < a ? b : a;
  }
};
template <class T>
using Wrap = std::conditional_t<std::is_floating_point_v<T>, T, std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<std::conditional_t<std::is_floating_point_v<T>, int, T>>>>;
struct Sum {
  template <class T> static constexpr T identity() { return T(0); }
  template <class T> static HWY_INLINE T f(T a, T b) { return T(Wrap<T>(a) + Wrap<T>(b)); }
};
struct Prod {
  template <class T> static constexpr T identity() { return T(1); }
  template <class T> static HWY_INLINE T f(T a, T b) { return T(Wrap<T>(a) * Wrap<T>(b)); }
};
struct And {
  template <class T> static constexpr T identity() { return T(~T(0)); }
  template <class T> static HWY_INLINE T f(T a, T b) { return T(a & b); }
};
struct Or {
  template <class T> static constexpr T identity() { return T(0); }
  template <class T> static HWY_INLINE T f(T a, T b) { return T(a | b); }
};
struct AndBool : And { template <class T> static constexpr T identity() { return T(1); } };

// 128 streams for a row: vectors of the widest target times eight.
template <class Op, class T, class Acc>
void fold_row(void* acc, const void* xs, int64_t n) {
  auto* x = static_cast<const T*>(xs);
  constexpr int kStreams = sizeof(T) == 8 ? 64 : 128;
  Acc total = *static_cast<Acc*>(acc);
  int64_t i = 0;
  if (n >= kStreams) {
    alignas(64) T part[kStreams];
    for (int s = 0; s < kStreams; ++s) part[s] = x[s];
    for (i = kStreams; i + kStreams <= n; i += kStreams)
      for (int s = 0; s < kStreams; ++s) part[s] = Op::f(part[s], x[i + s]);
    for (int width = kStreams / 2; width >= 1; width /= 2)
      for (int s = 0; s < width; ++s) part[s] = Op::f(part[s], part[s + width]);
    total = Op::f(total, Acc(part[0]));
  }
  for (; i < n; ++i) total = Op::f(total, Acc(x[i]));
  *static_cast<Acc*>(acc) = total;
}
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
namespace hn = hwy::HWY_NAMESPACE;
struct VSum { template <class V> static HWY_INLINE V f(V a, V b) { return hn::Add(a, b); } };
struct VProd { template <class V> static HWY_INLINE V f(V a, V b) { return hn::Mul(a, b); } };
// f32: eight vectors at once in registers; maxima take the plain way (their order rules need selects).
template <class VOp, class Op>
void fold_row_f32(void* acc, const void* xs, int64_t n) {
  const hn::ScalableTag<float> d;
  auto* x = static_cast<const float*>(xs);
  const int64_t lanes = int64_t(hn::Lanes(d)), step = 8 * lanes;
  double total = *static_cast<double*>(acc);
  int64_t i = 0;
  while (n - i >= step) {
    const int64_t end = i + (n - i < 16 * step ? (n - i) / step * step : 16 * step);
    auto a0 = hn::LoadU(d, x + i), a1 = hn::LoadU(d, x + i + lanes), a2 = hn::LoadU(d, x + i + 2 * lanes), a3 = hn::LoadU(d, x + i + 3 * lanes);
    auto a4 = hn::LoadU(d, x + i + 4 * lanes), a5 = hn::LoadU(d, x + i + 5 * lanes), a6 = hn::LoadU(d, x + i + 6 * lanes), a7 = hn::LoadU(d, x + i + 7 * lanes);
    for (i += step; i < end; i += step) {
      a0 = VOp::f(a0, hn::LoadU(d, x + i)), a1 = VOp::f(a1, hn::LoadU(d, x + i + lanes));
      a2 = VOp::f(a2, hn::LoadU(d, x + i + 2 * lanes)), a3 = VOp::f(a3, hn::LoadU(d, x + i + 3 * lanes));
      a4 = VOp::f(a4, hn::LoadU(d, x + i + 4 * lanes)), a5 = VOp::f(a5, hn::LoadU(d, x + i + 5 * lanes));
      a6 = VOp::f(a6, hn::LoadU(d, x + i + 6 * lanes)), a7 = VOp::f(a7, hn::LoadU(d, x + i + 7 * lanes));
    }
    const auto v = VOp::f(VOp::f(VOp::f(a0, a1), VOp::f(a2, a3)), VOp::f(VOp::f(a4, a5), VOp::f(a6, a7)));
    alignas(64) float lane[HWY_MAX_BYTES / 4];
    hn::Store(v, d, lane);
    for (int64_t s = 0; s < lanes; ++s) total = Op::f(total, double(lane[s]));
  }
  for (; i < n; ++i) total = Op::f(total, double(x[i]));
  *static_cast<double*>(acc) = total;
}
// Maxima and minima in registers. The instructions neither order zeros nor carry NaN, so a row with a NaN or whose
// result is a zero is done again by the plain loop.
template <bool kMax, class Op>
void fold_row_extreme(void* acc, const void* xs, int64_t n) {
  const hn::ScalableTag<float> d;
  auto* x = static_cast<const float*>(xs);
  const int64_t lanes = int64_t(hn::Lanes(d));
  if (n < 4 * lanes) return fold_row<Op, float, float>(acc, xs, n);
  const auto f = [](auto a, auto b) HWY_ATTR { return kMax ? hn::Max(a, b) : hn::Min(a, b); };
  auto m0 = hn::LoadU(d, x), m1 = m0, m2 = m0, m3 = m0;
  auto nan = hn::IsNaN(m0);
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + lanes), c = hn::LoadU(d, x + i + 2 * lanes), e = hn::LoadU(d, x + i + 3 * lanes);
    m0 = f(m0, a), m1 = f(m1, b), m2 = f(m2, c), m3 = f(m3, e);
    // a + b + c + e is NaN when one of them is; opposite infinities only cost the slow way.
    nan = hn::Or(nan, hn::IsNaN(hn::Add(hn::Add(a, b), hn::Add(c, e))));
  }
  float lane[HWY_MAX_BYTES / 4];
  hn::StoreU(f(f(m0, m1), f(m2, m3)), d, lane);
  float top = lane[0];
  for (int64_t s = 1; s < lanes; ++s) top = Op::f(top, lane[s]);
  if (!hn::AllFalse(d, nan) || top == 0) return fold_row<Op, float, float>(acc, xs, n);
  for (; i < n; ++i) top = Op::f(top, x[i]);
  *static_cast<float*>(acc) = Op::f(*static_cast<float*>(acc), top);
}
#endif

template <class Op, class T, class Acc>
void fold_columns(void* acc, const void* xs, int64_t n) {
  auto* a = static_cast<Acc*>(acc);
  auto* x = static_cast<const T*>(xs);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) a[i] = Op::f(a[i], Acc(x[i]));
}
template <class Op, class T, class Acc>
void fold_tile(void* acc, const void* xs, int64_t stride, int64_t count, int64_t n) {
  auto* a = static_cast<Acc*>(acc);
  auto* base = static_cast<const char*>(xs);
  constexpr int64_t kWidth = 64;
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    T part[kWidth];
    const char* p = base + i * int64_t(sizeof(T));
    __builtin_memcpy(part, p, sizeof part);
    for (int64_t r = 1; r < count; ++r) {
      auto* x = reinterpret_cast<const T*>(p + r * stride);
      for (int64_t s = 0; s < kWidth; ++s) part[s] = Op::f(part[s], x[s]);
    }
    for (int64_t s = 0; s < kWidth; ++s) a[i + s] = Op::f(a[i + s], Acc(part[s]));
  }
  for (int64_t r = 0; r < count; ++r)
    if (i < n) fold_columns<Op, T, Acc>(a + i, reinterpret_cast<const T*>(base + r * stride) + i, n - i);
}
template <class Op, class Acc>
void fold_init(void* acc, int64_t n) {
  for (int64_t i = 0; i < n; ++i) static_cast<Acc*>(acc)[i] = Op::template identity<Acc>();
}
template <class T, class Acc>
void fold_finish(void* out, const void* acc, int64_t n) {
  for (int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = T(static_cast<const Acc*>(acc)[i]);
}
template <class T>
constexpr uint32_t dtype_of() {
  if (std::is_same_v<T, float>) return TN_F32;
  if (std::is_same_v<T, double>) return TN_F64;
  constexpr bool s = std::is_signed_v<T>;
  switch (sizeof(T)) {
    case 1: return s ? TN_I8 : TN_U8;
    case 2: return s ? TN_I16 : TN_U16;
    case 4: return s ? TN_I32 : TN_U32;
    default: return s ? TN_I64 : TN_U64;
  }
}
template <class Op, class T, class Acc>
constexpr Fold make_fold() {
  return {dtype_of<Acc>(), fold_init<Op, Acc>, fold_row<Op, T, Acc>, fold_columns<Op, T, Acc>, fold_columns<Op, Acc, Acc>, fold_finish<T, Acc>, fold_tile<Op, T, Acc>};
}
template <class Op, class T, class Acc = T>
const Fold* fold_of() {
  static constexpr Fold kFold = make_fold<Op, T, Acc>();
  return &kFold;
}
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
template <bool kMax, class Op>
constexpr Fold make_extreme() {
  Fold f = make_fold<Op, float, float>();
  f.row = fold_row_extreme<kMax, Op>;
  return f;
}
template <class VOp, class Op>
constexpr Fold make_f32() {
  Fold f = make_fold<Op, float, double>();
  f.row = fold_row_f32<VOp, Op>;
  return f;
}
#endif
template <class T>
const Fold* integer_fold(uint32_t monoid) {
  switch (monoid) {
    case TN_MONOID_SUM: return fold_of<Sum, T>();
    case TN_MONOID_PROD: return fold_of<Prod, T>();
    case TN_MONOID_MAX: return fold_of<Max, T>();
    case TN_MONOID_MIN: return fold_of<Min, T>();
    case TN_MONOID_AND: return fold_of<And, T>();
    case TN_MONOID_OR: return fold_of<Or, T>();
    default: return nullptr;
  }
}
const Fold* fold_fn(uint32_t monoid, uint32_t dtype) {
  switch (dtype) {
    case TN_BOOL:
      if (monoid == TN_MONOID_AND || monoid == TN_MONOID_MIN) return fold_of<AndBool, uint8_t>();
      return monoid == TN_MONOID_OR || monoid == TN_MONOID_MAX ? fold_of<Or, uint8_t>() : nullptr;
    case TN_U8: return integer_fold<uint8_t>(monoid);
    case TN_I8: return integer_fold<int8_t>(monoid);
    case TN_U16: return integer_fold<uint16_t>(monoid);
    case TN_I16: return integer_fold<int16_t>(monoid);
    case TN_U32: return integer_fold<uint32_t>(monoid);
    case TN_I32: return integer_fold<int32_t>(monoid);
    case TN_U64: return integer_fold<uint64_t>(monoid);
    case TN_I64: return integer_fold<int64_t>(monoid);
    case TN_F32:
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
    {
      static constexpr Fold kSum = make_f32<VSum, Sum>();
      static constexpr Fold kMaxFold = make_extreme<true, Max>(), kMinFold = make_extreme<false, Min>();
      if (monoid == TN_MONOID_SUM) return &kSum;
      if (monoid == TN_MONOID_MAX) return &kMaxFold;
      if (monoid == TN_MONOID_MIN) return &kMinFold;
      if (monoid == TN_MONOID_PROD) return fold_of<Prod, float, double>();
    }
#else
      if (monoid == TN_MONOID_SUM) return fold_of<Sum, float, double>();
      if (monoid == TN_MONOID_PROD) return fold_of<Prod, float, double>();
#endif
      return monoid == TN_MONOID_MAX ? fold_of<Max, float>() : monoid == TN_MONOID_MIN ? fold_of<Min, float>() : nullptr;
    case TN_F64:
      return monoid == TN_MONOID_SUM ? fold_of<Sum, double>() : monoid == TN_MONOID_PROD ? fold_of<Prod, double>()
           : monoid == TN_MONOID_MAX ? fold_of<Max, double>() : monoid == TN_MONOID_MIN ? fold_of<Min, double>() : nullptr;
    default: return nullptr;
  }
}

// Position of the first largest (or smallest) value; the first NaN ends the search.
template <class T, bool kMax>
void index_row(void* best, int64_t* index, const void* xs, int64_t base, int64_t n) {
  auto* x = static_cast<const T*>(xs);
  T top = *static_cast<T*>(best);
  int64_t at = *index;
  if (at >= 0 && top != top) return;
  for (int64_t i = 0; i < n; ++i) {
    const bool better = at < 0 || (kMax ? x[i] > top : x[i] < top) || x[i] != x[i];
    if (!better) continue;
    top = x[i], at = base + i;
    if (top != top) break;
  }
  *static_cast<T*>(best) = top;
  *index = at;
}
template <class T>
const IndexFold* index_of(bool largest) {
  static constexpr IndexFold kMax{index_row<T, true>}, kMin{index_row<T, false>};
  return largest ? &kMax : &kMin;
}
const IndexFold* index_fn(uint32_t monoid, uint32_t dtype) {
  const bool largest = monoid == TN_MONOID_ARGMAX;
  switch (dtype) {
    case TN_BOOL: case TN_U8: return index_of<uint8_t>(largest);
    case TN_I8: return index_of<int8_t>(largest);
    case TN_U16: return index_of<uint16_t>(largest);
    case TN_I16: return index_of<int16_t>(largest);
    case TN_U32: return index_of<uint32_t>(largest);
    case TN_I32: return index_of<int32_t>(largest);
    case TN_U64: return index_of<uint64_t>(largest);
    case TN_I64: return index_of<int64_t>(largest);
    case TN_F32: return index_of<float>(largest);
    case TN_F64: return index_of<double>(largest);
    default: return nullptr;
  }
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/isa.h"
namespace tenon::cpu {
const Fold* find_fold(Isa isa, uint32_t monoid, uint32_t dtype) { return TENON_CPU_PICK(isa, fold_fn)(monoid, dtype); }
const IndexFold* find_index_fold(Isa isa, uint32_t monoid, uint32_t dtype) { return TENON_CPU_PICK(isa, index_fn)(monoid, dtype); }
}  // namespace tenon::cpu
#endif
