// backends/cpu/pointwise/math-inl.h - f32 functions on Highway vectors, within the error table of tenon/types.h.
//
// Polynomials are least-maximum fits of our own (relative error below 3e-9 before rounding). Special values are put in
// at the end by selects, so that every lane takes the same way. Included once per target.
#if defined(TENON_CPU_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_MATH_INL
#undef TENON_CPU_MATH_INL
#else
#define TENON_CPU_MATH_INL
#endif

#include <cmath>
#include <limits>

#include "hwy/highway.h"

// No vector unit behind Highway: one lane, or lanes in loops, and no fused multiply-add.
#undef TENON_CPU_EMULATED
#define TENON_CPU_EMULATED (HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128)

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V = hn::Vec<D>>
HWY_INLINE V horner(D, V, V acc) { return acc; }
// ((c0 x + c1) x + c2) ... : coefficients from the highest power down.
template <class D, class V, class... More>
HWY_INLINE V horner(D d, V x, V acc, float c, More... more) { return horner(d, x, hn::MulAdd(acc, x, hn::Set(d, c)), more...); }
template <class D, class V, class... More>
HWY_INLINE V polynomial(D d, V x, float top, More... more) { return horner(d, x, hn::Set(d, top), more...); }

template <class D>
constexpr float kInf32 = std::numeric_limits<float>::infinity();

// x where x is NaN, else y.
template <class V>
HWY_INLINE V keep_nan(V x, V y) { return hn::IfThenElse(hn::IsNaN(x), x, y); }

// x cut at a limit from above or below; a NaN stays. (The x86 instructions give the second operand for a NaN.)
template <class D, class V>
HWY_INLINE V cut_above(D d, V x, float limit) {
  const V l = hn::Set(d, limit);
#if HWY_ARCH_X86 && !TENON_CPU_EMULATED
  return hn::Min(l, x);
#else
  return hn::IfThenElse(hn::Gt(x, l), l, x);
#endif
}
template <class D, class V>
HWY_INLINE V cut_below(D d, V x, float limit) {
  const V l = hn::Set(d, limit);
#if HWY_ARCH_X86 && !TENON_CPU_EMULATED
  return hn::Max(l, x);
#else
  return hn::IfThenElse(hn::Lt(x, l), l, x);
#endif
}

// v * 2^q for whole q in [-252, 254]; the result may be subnormal or infinite.
template <class D, class V>
HWY_INLINE V scale_by_power(D d, V v, V q) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(V) == 64) return V{_mm512_scalef_ps(v.raw, q.raw)};
#endif
  const hn::RebindToSigned<D> di;
  const auto k = hn::ConvertTo(di, q);
  const auto half = hn::ShiftRight<1>(k);
  const auto rest = hn::Sub(k, half);
  const auto bias = hn::Set(di, 127);
  const V f1 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V f2 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(rest, bias)));
  return hn::Mul(hn::Mul(v, f1), f2);
}

// x = q ln2 + r, |r| <= ln2 / 2, |x| < 2^9 ln2. Adding 1.5 * 2^23 rounds to a whole number, and 127 more leaves the biased
// exponent of 2^q in the low bits: fewer operations than rounding and converting, which count where two units do it all.
template <class D, class V>
struct Ln2Parts {
  V shifted, q, r;
  // 2^q for q in [-126, 127].
  HWY_INLINE V power(D d) const { return hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(hn::RebindToSigned<D>(), shifted))); }
};
// Two constants keep r's error below 2^-30.
template <class D, class V>
HWY_INLINE Ln2Parts<D, V> reduce_ln2(D d, V x) {
  const V shift = hn::Set(d, 12582912.0f + 127.0f);
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), shift), q = hn::Sub(shifted, shift);
  const V high = hn::NegMulAdd(q, hn::Set(d, 0.693359375f), x);  // 9 bits: exact product
  return {shifted, q, hn::NegMulAdd(q, hn::Set(d, -2.12194440e-4f), high)};
}
// (e^r - 1 - r) / r^2 on |r| <= ln2 / 2.
template <class D, class V>
HWY_INLINE V exp_tail(D d, V r) {
  return polynomial(d, r, 1.985783601e-04f, 1.393370796e-03f, 8.333360776e-03f, 4.166646302e-02f, 1.666666716e-01f, 0.5f);
}

template <class D, class V>
HWY_INLINE V vexp(D d, V x) {
  const auto z = reduce_ln2(d, cut_above(d, cut_below(d, x, -104.0f), 89.0f));
  const V p = hn::Add(hn::MulAdd(hn::Mul(z.r, z.r), exp_tail(d, z.r), z.r), hn::Set(d, 1.0f));
  return scale_by_power(d, p, z.q);
}
// e^x for x <= 0 (or NaN); results below 2^-125 are 0.
template <class D, class V>
HWY_INLINE V vexp_nonpositive(D d, V x) {
  const auto z = reduce_ln2(d, cut_below(d, x, -87.0f));
  const V p = hn::Add(hn::MulAdd(hn::Mul(z.r, z.r), exp_tail(d, z.r), z.r), hn::Set(d, 1.0f));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.0f)), hn::Mul(p, z.power(d)));
}

template <class D, class V>
HWY_INLINE V vexpm1(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V one = hn::Set(d, 1.0f);
  const auto z = reduce_ln2(d, cut_above(d, cut_below(d, x, -20.0f), 89.0f));
  const auto k = hn::ConvertTo(di, z.q);
  const V p = hn::MulAdd(hn::Mul(z.r, z.r), exp_tail(d, z.r), z.r);           // e^r - 1
  const V less = hn::BitCast(d, hn::ShiftLeft<23>(hn::Sub(hn::Set(di, 127), hn::Min(k, hn::Set(di, 126)))));  // 2^-k
  // 2^k (p + (1 - 2^-k)); with k = 0 the bracket is p alone.
  V y = scale_by_power(d, hn::Add(p, hn::Sub(one, less)), z.q);
  y = hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 1e-7f)), x, y);            // also -0
  return keep_nan(x, y);
}

// log(m 2^e) for m in [sqrt(1/2), sqrt 2) given f = m - 1, plus `low`, a correction far below f.
template <class D, class V>
HWY_INLINE V log_of_parts(D d, V f, V e, V low) {
  const V f2 = hn::Mul(f, f);
  const V g = polynomial(d, f, 6.746601313e-02f, -1.167564094e-01f, 1.188817471e-01f, -1.240559146e-01f, 1.421955079e-01f,
                         -1.666799635e-01f, 2.000211924e-01f, -2.500000894e-01f, 3.333331347e-01f);
  V y = hn::Mul(hn::Mul(f, f2), g);
  y = hn::Add(y, low);
  y = hn::MulAdd(e, hn::Set(d, -2.12194440e-4f), y);
  y = hn::NegMulAdd(hn::Set(d, 0.5f), f2, y);
  return hn::Add(hn::MulAdd(e, hn::Set(d, 0.693359375f), f), y);
}
// Splits positive normal x into f = m - 1 and exponent e.
template <class D, class V>
HWY_INLINE void split_log(D d, V x, V* f, V* e) {
  const hn::RebindToSigned<D> di;
  const auto kRootHalf = hn::Set(di, 0x3F3504F3);
  const auto ix = hn::Sub(hn::BitCast(di, x), kRootHalf);
  *e = hn::ConvertTo(d, hn::ShiftRight<23>(ix));
  const auto m = hn::Add(hn::And(ix, hn::Set(di, 0x007FFFFF)), kRootHalf);
  *f = hn::Sub(hn::BitCast(d, m), hn::Set(d, 1.0f));
}
// What log gives outside (0, inf): NaN below, -inf at zero, inf at inf.
template <class D, class V>
HWY_INLINE V log_specials(D d, V x, V y) {
  y = hn::IfThenElse(hn::Eq(x, hn::Set(d, kInf32<D>)), x, y);
  y = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), y);
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Set(d, -kInf32<D>), y);
}

template <class D, class V>
HWY_INLINE V vlog(D d, V x) {
  const auto tiny = hn::Lt(x, hn::Set(d, 1.17549435e-38f));
  const V scaled = hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 8388608.0f)), x);
  V f, e;
  split_log(d, scaled, &f, &e);
  e = hn::IfThenElse(tiny, hn::Sub(e, hn::Set(d, 23.0f)), e);
  return keep_nan(x, log_specials(d, x, log_of_parts(d, f, e, hn::Zero(d))));
}

template <class D, class V>
HWY_INLINE V vlog1p(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V u = hn::Add(x, one);
  V f, e;
  split_log(d, u, &f, &e);
  // What the sum u lost, relative to u.
  const V big = hn::Max(x, one), small = hn::Min(x, one);
  const V lost = hn::Sub(small, hn::Sub(u, big));
  V y = log_of_parts(d, f, e, hn::Div(lost, u));
  y = hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 3e-8f)), x, y);
  return keep_nan(x, log_specials(d, u, y));
}

template <class D, class V>
HWY_INLINE V vtanh(D d, V x) {
  const V a = hn::Abs(x);
  // t = e^(2a) - 1; tanh = t / (t + 2). Beyond 10 the result is 1.
  const V c = cut_above(d, a, 10.0f);
  const auto z = reduce_ln2(d, hn::Add(c, c));
  const V p = hn::MulAdd(hn::Mul(z.r, z.r), exp_tail(d, z.r), z.r), power = z.power(d);
  const V t = hn::MulAdd(p, power, hn::Sub(power, hn::Set(d, 1.0f)));
  const V y = hn::Div(t, hn::Add(t, hn::Set(d, 2.0f)));
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, hn::Set(d, 1e-4f)), a, y), x);
}

template <class D, class V>
HWY_INLINE V verf(D d, V x) {
  const V a = hn::Abs(x), u = hn::Mul(x, x);
  const V near = hn::Mul(a, polynomial(d, u, -9.641516954e-06f, 1.125694835e-04f, -8.482828853e-04f, 5.220945459e-03f,
                                       -2.686540037e-02f, 1.128378212e-01f, -3.761263788e-01f, 1.128379226e+00f));
  const V c = hn::Min(a, hn::Set(d, 4.0f));
  const V log_erfc = polynomial(d, c, -2.168677202e-05f, 4.413353454e-04f, -4.204556346e-03f, 2.520824037e-02f,
                                -1.084185466e-01f, -6.332198977e-01f, -1.129578352e+00f, 1.880360069e-04f);
  const V far = hn::Sub(hn::Set(d, 1.0f), vexp(d, log_erfc));
  return keep_nan(x, hn::CopySign(hn::IfThenElse(hn::Lt(a, hn::Set(d, 1.0f)), near, far), x));
}

// Sine (phase 0) or cosine (phase 1) for |x| < 1e5: the multiple of pi/2 is taken off in f64. Larger lanes are redone by libm.
template <class D, class V>
HWY_INLINE V sin_or_cos(D d, V x, int phase) {
  const hn::RebindToSigned<D> di;
#if TENON_CPU_EMULATED
  const hn::Rebind<double, D> dd;
#else
  const hn::Repartition<double, D> dd;
  const hn::Half<D> dh;
#endif
  const V limit = hn::Set(d, 1e5f);
  const V c = hn::IfThenElse(hn::Lt(hn::Abs(x), limit), x, hn::Zero(d));
  const V q = hn::Round(hn::Mul(c, hn::Set(d, 0.636619772f)));
  const auto neg_half_pi = hn::Set(dd, -1.57079632679489661923);
#if TENON_CPU_EMULATED
  const V r = hn::DemoteTo(d, hn::MulAdd(hn::PromoteTo(dd, q), neg_half_pi, hn::PromoteTo(dd, c)));
#else
  const auto high = hn::MulAdd(hn::PromoteTo(dd, hn::UpperHalf(dh, q)), neg_half_pi, hn::PromoteTo(dd, hn::UpperHalf(dh, c)));
  const auto low = hn::MulAdd(hn::PromoteTo(dd, hn::LowerHalf(dh, q)), neg_half_pi, hn::PromoteTo(dd, hn::LowerHalf(dh, c)));
  const V r = hn::Combine(d, hn::DemoteTo(dh, high), hn::DemoteTo(dh, low));
#endif
  const V u = hn::Mul(r, r);
  const V s = hn::MulAdd(hn::Mul(r, u), polynomial(d, u, 2.718118594e-06f, -1.983931143e-04f, 8.333329111e-03f, -1.666666716e-01f), r);
  const V k = hn::MulAdd(hn::Mul(u, u), polynomial(d, u, -2.720572638e-07f, 2.479945942e-05f, -1.388888340e-03f, 4.166666791e-02f),
                         hn::NegMulAdd(u, hn::Set(d, 0.5f), hn::Set(d, 1.0f)));
  const auto n = hn::Add(hn::ConvertTo(di, q), hn::Set(di, phase));
  const auto odd = hn::RebindMask(d, hn::TestBit(n, hn::Set(di, 1)));
  const auto sign = hn::BitCast(d, hn::ShiftLeft<30>(hn::And(n, hn::Set(di, 2))));
  V y = hn::Xor(hn::IfThenElse(odd, k, s), sign);
  if (phase == 0) y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);  // -0
  return keep_nan(x, y);
}

template <class D, class V>
HWY_INLINE V vatan(D d, V x) {
  const V a = hn::Abs(x), one = hn::Set(d, 1.0f);
  const auto large = hn::Gt(a, one);
  const V z = hn::IfThenElse(large, hn::Div(one, a), a);
  const V u = hn::Mul(z, z);
  const V g = polynomial(d, u, 1.113771810e-03f, -7.317872252e-03f, 2.253968827e-02f, -4.468972981e-02f, 6.741581857e-02f,
                         -8.811084926e-02f, 1.105822176e-01f, -1.427983344e-01f, 1.999967098e-01f, -3.333332837e-01f);
  const V p = hn::MulAdd(hn::Mul(z, u), g, z);
  const V half_pi_low = hn::Set(d, -4.37113883e-8f);
  const V y = hn::IfThenElse(large, hn::Add(hn::Sub(hn::Set(d, 1.57079637f), p), half_pi_low), p);
  return keep_nan(x, hn::CopySign(y, x));
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
