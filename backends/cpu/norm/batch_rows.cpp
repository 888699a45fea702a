#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/norm/batch_rows.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/norm/batch_rows.h"
#include "backends/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
using BatchTag = hn::ScalableTag<float>;
using BatchVec = hn::Vec<BatchTag>;

// Calls f.template run<V>(first channel) for groups of whole vectors and f.rest(first channel, count) for the last few.
template <class F>
HWY_INLINE void for_channels(int64_t c, F f) {
  const int64_t lanes = int64_t(hn::Lanes(BatchTag()));
  int64_t i = 0;
  for (; c - i >= 4 * lanes; i += 4 * lanes) f(i, lanes, std::integral_constant<int, 4>());
  for (; c - i >= 2 * lanes; i += 2 * lanes) f(i, lanes, std::integral_constant<int, 2>());
  for (; c - i >= lanes; i += lanes) f(i, lanes, std::integral_constant<int, 1>());
  if (i < c) f(i, c - i, std::integral_constant<int, 0>());
}
// V whole vectors, or (V = 0) one part vector of `count` channels.
template <int V>
struct Group {
  static constexpr int kN = V == 0 ? 1 : V;
  static constexpr int kRows = 4 / kN;  // rows in flight: hides the latency of additions
  int64_t lanes;
  HWY_INLINE BatchVec load(const float* p, int v) const {
    if constexpr (V == 0) return load_part(BatchTag(), p, lanes);
    else return hn::LoadU(BatchTag(), p + v * lanes);
  }
  HWY_INLINE void store(BatchVec x, float* p, int v) const {
    if constexpr (V == 0) store_part(BatchTag(), x, p, lanes);
    else hn::StoreU(x, BatchTag(), p + v * lanes);
  }
};
// total[t][v] = the sum over rows of what term(row, v, vectors[T]) gives, kRows streams.
template <int T, int V, class F>
HWY_INLINE void sum_rows(const Group<V>&, int64_t rows, BatchVec (*total)[Group<V>::kN], F term) {
  using G = Group<V>;
  const BatchTag d;
  BatchVec acc[G::kRows][T][G::kN];
  for (int u = 0; u < G::kRows; ++u)
    for (int t = 0; t < T; ++t)
      for (int v = 0; v < G::kN; ++v) acc[u][t][v] = hn::Zero(d);
  const auto add = [&](int64_t r, int u) HWY_ATTR {
    for (int v = 0; v < G::kN; ++v) {
      BatchVec now[T];
      term(r, v, now);
      for (int t = 0; t < T; ++t) acc[u][t][v] = hn::Add(acc[u][t][v], now[t]);
    }
  };
  int64_t r = 0;
  for (; r + G::kRows <= rows; r += G::kRows)
    for (int u = 0; u < G::kRows; ++u) add(r + u, u);
  for (; r < rows; ++r) add(r, 0);
  for (int t = 0; t < T; ++t)
    for (int v = 0; v < G::kN; ++v) {
      total[t][v] = acc[0][t][v];
      for (int u = 1; u < G::kRows; ++u) total[t][v] = hn::Add(total[t][v], acc[u][t][v]);
    }
}

void rows_moments(const float* x, int64_t rows, int64_t c, float* pivot, float* drift, float* square) {
  for_channels(c, [&](int64_t first, int64_t lanes, auto count) HWY_ATTR {
    const BatchTag d;
    const Group<decltype(count)::value> g{lanes};
    constexpr int kN = decltype(g)::kN;
    const float* from = x + first;
    BatchVec mean[kN], sum[1][kN], moment[2][kN];
    sum_rows<1>(g, rows, sum, [&](int64_t r, int v, BatchVec* now) HWY_ATTR { now[0] = g.load(from + r * c, v); });
    const BatchVec scale = hn::Set(d, 1.0f / float(rows));
    for (int v = 0; v < kN; ++v) mean[v] = hn::Mul(sum[0][v], scale);
    sum_rows<2>(g, rows, moment, [&](int64_t r, int v, BatchVec* now) HWY_ATTR {
      now[0] = hn::Sub(g.load(from + r * c, v), mean[v]);
      now[1] = hn::Mul(now[0], now[0]);
    });
    for (int v = 0; v < kN; ++v) {
      g.store(mean[v], pivot + first, v);
      g.store(moment[0][v], drift + first, v), g.store(moment[1][v], square + first, v);
    }
  });
}
void rows_affine(const float* x, int64_t rows, int64_t c, const float* mean, const float* factor, const float* add, float* y) {
  for_channels(c, [&](int64_t first, int64_t lanes, auto count) HWY_ATTR {
    const Group<decltype(count)::value> g{lanes};
    constexpr int kN = decltype(g)::kN;
    BatchVec m[kN], f[kN], a[kN];
    for (int v = 0; v < kN; ++v) m[v] = g.load(mean + first, v), f[v] = g.load(factor + first, v), a[v] = g.load(add + first, v);
    for (int64_t r = 0; r < rows; ++r)
      for (int v = 0; v < kN; ++v) g.store(hn::MulAdd(hn::Sub(g.load(x + r * c + first, v), m[v]), f[v], a[v]), y + r * c + first, v);
  });
}
void rows_grad_sums(const float* x, const float* dy, int64_t rows, int64_t c, const float* mean, float* sum, float* dot) {
  for_channels(c, [&](int64_t first, int64_t lanes, auto count) HWY_ATTR {
    const Group<decltype(count)::value> g{lanes};
    constexpr int kN = decltype(g)::kN;
    BatchVec m[kN], total[2][kN];
    for (int v = 0; v < kN; ++v) m[v] = g.load(mean + first, v);
    sum_rows<2>(g, rows, total, [&](int64_t r, int v, BatchVec* now) HWY_ATTR {
      now[0] = g.load(dy + r * c + first, v);
      now[1] = hn::Mul(now[0], hn::Sub(g.load(x + r * c + first, v), m[v]));
    });
    for (int v = 0; v < kN; ++v) g.store(total[0][v], sum + first, v), g.store(total[1][v], dot + first, v);
  });
}
void rows_grad(const float* x, const float* dy, int64_t rows, int64_t c, const float* mean, const float* factor, const float* dy_mean,
               const float* slope, float* dx) {
  for_channels(c, [&](int64_t first, int64_t lanes, auto count) HWY_ATTR {
    const Group<decltype(count)::value> g{lanes};
    constexpr int kN = decltype(g)::kN;
    BatchVec m[kN], f[kN], dm[kN], k[kN];
    for (int v = 0; v < kN; ++v)
      m[v] = g.load(mean + first, v), f[v] = g.load(factor + first, v), dm[v] = g.load(dy_mean + first, v), k[v] = g.load(slope + first, v);
    for (int64_t r = 0; r < rows; ++r)
      for (int v = 0; v < kN; ++v) {
        const int64_t at = r * c + first;
        const BatchVec far = hn::Sub(g.load(x + at, v), m[v]);
        g.store(hn::Mul(f[v], hn::NegMulAdd(far, k[v], hn::Sub(g.load(dy + at, v), dm[v]))), dx + at, v);
      }
  });
}

// f(load, store, offset) for whole vectors and a part vector.
template <class F>
HWY_INLINE void for_plane(int64_t n, F f) {
  const int64_t lanes = int64_t(hn::Lanes(BatchTag()));
  int64_t i = 0;
  for (; n - i >= lanes; i += lanes) f(i, Group<1>{lanes});
  if (i < n) f(i, Group<0>{n - i});
}
void plane_affine(const float* x, int64_t n, float mean, float factor, float add, float* y) {
  const BatchTag d;
  const BatchVec m = hn::Set(d, mean), f = hn::Set(d, factor), a = hn::Set(d, add);
  for_plane(n, [&](int64_t i, auto g) HWY_ATTR { g.store(hn::MulAdd(hn::Sub(g.load(x + i, 0), m), f, a), y + i, 0); });
}
double plane_dot(const float* x, const float* dy, int64_t n, float mean) {
  const BatchTag d;
  const BatchVec m = hn::Set(d, mean);
  const int64_t block = 128 * int64_t(hn::Lanes(d));  // lanes add few terms before they go into f64
  double total = 0;
  for (int64_t b = 0; b < n; b += block) {
    const int64_t count = n - b < block ? n - b : block, lanes = int64_t(hn::Lanes(d)), whole = count / lanes;
    const Group<1> g{lanes};
    BatchVec sum[1][1];
    sum_rows<1>(g, whole, sum, [&](int64_t r, int, BatchVec* now) HWY_ATTR {
      now[0] = hn::Mul(g.load(dy + b + r * lanes, 0), hn::Sub(g.load(x + b + r * lanes, 0), m));
    });
    total += sum_lanes(d, sum[0][0]);
    for (int64_t i = whole * lanes; i < count; ++i) total += double(dy[b + i]) * double(x[b + i] - mean);
  }
  return total;
}
void plane_grad(const float* x, const float* dy, int64_t n, float mean, float factor, float dy_mean, float slope, float* dx) {
  const BatchTag d;
  const BatchVec m = hn::Set(d, mean), f = hn::Set(d, factor), dm = hn::Set(d, dy_mean), k = hn::Set(d, slope);
  for_plane(n, [&](int64_t i, auto g) HWY_ATTR {
    g.store(hn::Mul(f, hn::NegMulAdd(hn::Sub(g.load(x + i, 0), m), k, hn::Sub(g.load(dy + i, 0), dm))), dx + i, 0);
  });
}
const BatchCode* batch() {
  static constexpr BatchCode kCode{rows_moments, rows_affine, rows_grad_sums, rows_grad, plane_affine, plane_dot, plane_grad};
  return &kCode;
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/isa.h"
namespace tenon::cpu {
const BatchCode& batch_code(Isa isa) { return *TENON_CPU_PICK(isa, batch)(); }
}  // namespace tenon::cpu
#endif
