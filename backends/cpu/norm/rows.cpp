#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/norm/rows.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/norm/rows.h"
#include "backends/cpu/pointwise/math-inl.h"
#include "backends/cpu/simd-inl.h"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
using RowTag = hn::ScalableTag<float>;
using RowVec = hn::Vec<RowTag>;

// Sums f(i, count) over [0, n): whole vectors in four streams of at most 64 additions, the rest as a part vector
// whose lanes past the end f must leave at zero.
template <class F, class P>
HWY_INLINE double sum_of(int64_t n, F f, P part) {
  const RowTag d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  double total = 0;
  int64_t i = 0;
  while (n - i >= 4 * lanes) {
    const int64_t end = i + (n - i < 256 * lanes ? (n - i) / (4 * lanes) * (4 * lanes) : 256 * lanes);
    RowVec s0 = f(i), s1 = f(i + lanes), s2 = f(i + 2 * lanes), s3 = f(i + 3 * lanes);
    for (i += 4 * lanes; i < end; i += 4 * lanes)
      s0 = hn::Add(s0, f(i)), s1 = hn::Add(s1, f(i + lanes)), s2 = hn::Add(s2, f(i + 2 * lanes)), s3 = hn::Add(s3, f(i + 3 * lanes));
    total += sum_lanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
  }
  RowVec rest = hn::Zero(d);
  for (; n - i >= lanes; i += lanes) rest = hn::Add(rest, f(i));
  if (i < n) rest = hn::Add(rest, part(i, n - i));
  return total + sum_lanes(d, rest);
}

float row_max(const float* x, int64_t n) {
  const RowTag d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  float top = x[0];
  int64_t i = 0;
  if (n >= lanes) {
    RowVec m0 = hn::LoadU(d, x), m1 = m0, m2 = m0, m3 = m0;
    for (; n - i >= 4 * lanes; i += 4 * lanes) {
      m0 = hn::Max(m0, hn::LoadU(d, x + i)), m1 = hn::Max(m1, hn::LoadU(d, x + i + lanes));
      m2 = hn::Max(m2, hn::LoadU(d, x + i + 2 * lanes)), m3 = hn::Max(m3, hn::LoadU(d, x + i + 3 * lanes));
    }
    for (; n - i >= lanes; i += lanes) m0 = hn::Max(m0, hn::LoadU(d, x + i));
    float lane[HWY_MAX_BYTES / 4];
    hn::StoreU(hn::Max(hn::Max(m0, m1), hn::Max(m2, m3)), d, lane);
    for (int64_t k = 0; k < lanes; ++k) top = lane[k] > top ? lane[k] : top;
  }
  for (; i < n; ++i) top = x[i] > top ? x[i] : top;
  return top;
}
double row_exp_sum(const float* x, float shift, float* e, int64_t n) {
  const RowTag d;
  const RowVec s = hn::Set(d, shift);
  return sum_of(
      n,
      [&](int64_t i) HWY_ATTR {
        const RowVec v = vexp_nonpositive(d, hn::Sub(hn::LoadU(d, x + i), s));
        if (e) hn::StoreU(v, d, e + i);
        return v;
      },
      [&](int64_t i, int64_t count) HWY_ATTR {
        const RowVec v = vexp_nonpositive(d, hn::Sub(load_part(d, x + i, count), s));
        if (e) store_part(d, v, e + i, count);
        return hn::IfThenElseZero(hn::FirstN(d, size_t(count)), v);
      });
}
double row_sum(const float* x, int64_t n) {
  const RowTag d;
  return sum_of(n, [&](int64_t i) HWY_ATTR { return hn::LoadU(d, x + i); }, [&](int64_t i, int64_t count) HWY_ATTR { return load_part(d, x + i, count); });
}
double row_square_sum(const float* x, float mean, int64_t n) {
  const RowTag d;
  const RowVec m = hn::Set(d, mean);
  return sum_of(
      n,
      [&](int64_t i) HWY_ATTR {
        const RowVec v = hn::Sub(hn::LoadU(d, x + i), m);
        return hn::Mul(v, v);
      },
      [&](int64_t i, int64_t count) HWY_ATTR {
        const RowVec v = hn::Sub(load_part(d, x + i, count), m);
        return hn::IfThenElseZero(hn::FirstN(d, size_t(count)), hn::Mul(v, v));
      });
}
double row_dot(const float* a, const float* b, int64_t n) {
  const RowTag d;
  return sum_of(
      n, [&](int64_t i) HWY_ATTR { return hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i)); },
      [&](int64_t i, int64_t count) HWY_ATTR { return hn::Mul(load_part(d, a + i, count), load_part(d, b + i, count)); });
}

// y[i] = f(loads) over a row; load(p, i) gives a vector of p at i.
template <class F>
HWY_INLINE void map_row(float* y, int64_t n, bool stream, F f) {
  const RowTag d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  int64_t i = 0;
  if (stream) {
    for (; n - i >= lanes; i += lanes) hn::Stream(f([&](const float* p) HWY_ATTR { return hn::LoadU(d, p + i); }), d, y + i);
  } else {
    for (; n - i >= lanes; i += lanes) hn::StoreU(f([&](const float* p) HWY_ATTR { return hn::LoadU(d, p + i); }), d, y + i);
  }
  if (i < n) store_part(d, f([&](const float* p) HWY_ATTR { return load_part(d, p + i, n - i); }), y + i, n - i);
}
void row_affine(const float* x, float factor, float add, float* y, int64_t n, bool stream) {
  const RowTag d;
  const RowVec f = hn::Set(d, factor), a = hn::Set(d, add);
  map_row(y, n, stream, [&](auto load) HWY_ATTR { return hn::MulAdd(load(x), f, a); });
}
void row_normalise(const float* x, float mean, float rstd, const float* scale, const float* bias, float* y, int64_t n, bool stream) {
  const RowTag d;
  const RowVec m = hn::Set(d, mean), r = hn::Set(d, rstd);
  if (scale && bias)
    return map_row(y, n, stream, [&](auto load) HWY_ATTR { return hn::MulAdd(hn::Mul(hn::Sub(load(x), m), r), load(scale), load(bias)); });
  map_row(y, n, stream, [&](auto load) HWY_ATTR {
    RowVec v = hn::Mul(hn::Sub(load(x), m), r);
    if (scale) v = hn::Mul(v, load(scale));
    if (bias) v = hn::Add(v, load(bias));
    return v;
  });
}
void row_normalise_grad(const float* x, const float* g, float mean, float rstd, float g_mean, float h_mean, float* dx, int64_t n) {
  const RowTag d;
  const RowVec m = hn::Set(d, mean), r = hn::Set(d, rstd), gm = hn::Set(d, g_mean), hm = hn::Set(d, h_mean);
  map_row(dx, n, false, [&](auto load) HWY_ATTR {
    const RowVec xhat = hn::Mul(hn::Sub(load(x), m), r);
    return hn::Mul(r, hn::NegMulAdd(xhat, hm, hn::Sub(load(g), gm)));
  });
}
const RowCode* rows() {
  static constexpr RowCode kCode{row_max, row_exp_sum, row_sum, row_square_sum, row_dot, row_affine, row_normalise, row_normalise_grad};
  return &kCode;
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/isa.h"
namespace tenon::cpu {
const RowCode& row_code(Isa isa) { return *TENON_CPU_PICK(isa, rows)(); }
}  // namespace tenon::cpu
#endif
