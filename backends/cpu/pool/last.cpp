#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pool/last.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/pool/last.h"
#include "backends/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
using PoolTag = hn::ScalableTag<float>;
using PoolVec = hn::Vec<PoolTag>;

struct Whole {
  HWY_INLINE PoolVec load(const float* p) const { return hn::LoadU(PoolTag(), p); }
  HWY_INLINE void store(PoolVec v, float* p) const { hn::StoreU(v, PoolTag(), p); }
};
struct Rest {
  int64_t count;
  HWY_INLINE PoolVec load(const float* p) const { return load_part(PoolTag(), p, count); }
  HWY_INLINE void store(PoolVec v, float* p) const { store_part(PoolTag(), v, p, count); }
};
// f(io, column, first channel, taps across) for every vector of every window.
template <class F>
HWY_INLINE void for_vectors(const PoolLine& p, F f) {
  const int64_t lanes = int64_t(hn::Lanes(PoolTag())), whole = p.channels / lanes * lanes;
  for (int64_t j = 0; j < p.n_cols; ++j) {
    for (int64_t c = 0; c < whole; c += lanes) f(Whole(), j, c, p.cols[j]);
    if (whole < p.channels) f(Rest{p.channels - whole}, j, whole, p.cols[j]);
  }
}
// f(offset) for every tap of a window, row by row.
template <class F>
HWY_INLINE void for_taps(const PoolLine& p, int64_t rows, int64_t cols, F f) {
  if (rows == 2 && cols == 2) {
    f(0), f(p.col_step), f(p.row_step), f(p.row_step + p.col_step);
    return;
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) f(i * p.row_step + j * p.col_step);
}

// A NaN wins and stays; of equal values both signs of zero give +0.
HWY_INLINE PoolVec larger(PoolVec top, PoolVec v) {
  const PoolVec t = hn::IfThenElse(hn::Gt(v, top), v, top);
  const PoolVec tie = hn::IfThenElse(hn::Eq(v, top), hn::And(v, top), t);
  return hn::IfThenElse(hn::IsNaN(v), v, tie);
}
void last_max(const PoolLine& p, const float* x, int64_t rows, float* y) {
  for_vectors(p, [&](auto io, int64_t j, int64_t c, Span cols) HWY_ATTR {
    const float* from = x + cols.first * p.col_stride + c;
    PoolVec top = hn::Set(PoolTag(), -hwy::HighestValue<float>() * 2);
    for_taps(p, rows, cols.count, [&](int64_t at) HWY_ATTR { top = larger(top, io.load(from + at)); });
    io.store(top, y + j * p.out_col_stride + c);
  });
}
void last_max_grad(const PoolLine& p, const float* x, int64_t rows, const float* dy, float* dx, bool add) {
  const PoolTag d;
  for_vectors(p, [&](auto io, int64_t j, int64_t c, Span cols) HWY_ATTR {
    if (rows * cols.count == 0) return;
    const int64_t base = cols.first * p.col_stride + c;
    PoolVec top = io.load(x + base), which = hn::Zero(d);
    float tap = 0;
    for_taps(p, rows, cols.count, [&](int64_t at) HWY_ATTR {
      const PoolVec v = io.load(x + base + at);
      const auto first_nan = hn::And(hn::IsNaN(v), hn::Eq(top, top));
      const auto better = hn::Or(hn::Gt(v, top), first_nan);
      top = hn::IfThenElse(better, v, top), which = hn::IfThenElse(better, hn::Set(d, tap), which);
      tap += 1;
    });
    const PoolVec g = io.load(dy + j * p.out_col_stride + c);
    tap = 0;
    for_taps(p, rows, cols.count, [&](int64_t at) HWY_ATTR {
      const PoolVec mine = hn::IfThenElseZero(hn::Eq(which, hn::Set(d, tap)), g);
      io.store(add ? hn::Add(io.load(dx + base + at), mine) : mine, dx + base + at);
      tap += 1;
    });
  });
}
HWY_INLINE float share(int64_t divisor, int64_t taps) { return float(divisor ? divisor : taps); }
void last_average(const PoolLine& p, const float* x, int64_t rows, int64_t divisor, float* y) {
  const PoolTag d;
  for_vectors(p, [&](auto io, int64_t j, int64_t c, Span cols) HWY_ATTR {
    const float* from = x + cols.first * p.col_stride + c;
    PoolVec sum = hn::Zero(d);
    for (int64_t i = 0; i < rows; ++i) {  // rows summed apart: error grows with the window's height plus width
      PoolVec row = hn::Zero(d);
      for (int64_t k = 0; k < cols.count; ++k) row = hn::Add(row, io.load(from + i * p.row_step + k * p.col_step));
      sum = hn::Add(sum, row);
    }
    io.store(hn::Div(sum, hn::Set(d, share(divisor, rows * cols.count))), y + j * p.out_col_stride + c);
  });
}
void last_average_grad(const PoolLine& p, const float* dy, int64_t rows, int64_t divisor, float* dx, bool add) {
  const PoolTag d;
  for_vectors(p, [&](auto io, int64_t j, int64_t c, Span cols) HWY_ATTR {
    float* to = dx + cols.first * p.col_stride + c;
    const PoolVec g = hn::Div(io.load(dy + j * p.out_col_stride + c), hn::Set(d, share(divisor, rows * cols.count)));
    for_taps(p, rows, cols.count, [&](int64_t at) HWY_ATTR { io.store(add ? hn::Add(io.load(to + at), g) : g, to + at); });
  });
}
const LastCode* last() {
  static constexpr LastCode kCode{last_max, last_max_grad, last_average, last_average_grad};
  return &kCode;
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/isa.h"
namespace tenon::cpu {
const LastCode& last_code(Isa isa) { return *TENON_CPU_PICK(isa, last)(); }
}  // namespace tenon::cpu
#endif
