#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/matmul/tile.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/matmul/tile.h"
#include "backends/cpu/simd-inl.h"
#include "hwy/cache_control.h"

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

#if HWY_TARGET == HWY_AVX3
constexpr int kMaxVectors = 4, kMaxRows = 6;   // 24 accumulators of 32 registers
#elif HWY_TARGET == HWY_AVX2
constexpr int kMaxVectors = 2, kMaxRows = 6;   // 12 of 16
#else
constexpr int kMaxVectors = 4, kMaxRows = 4;
#endif
constexpr int64_t kPanel = 64;                 // columns of a packed panel of b

struct TileArgs {
  const float* a; int64_t a_row, a_col;
  const float* b; int64_t b_row;
  float* c; int64_t c_row;
  int64_t k, cols;
  bool add;                                    // c += instead of c =
};

// kRows x kVectors accumulators in registers. kPart: the last vector is not whole. kPacked: b is a padded panel in L2.
template <int kRows, int kVectors, bool kPart, bool kPacked>
void tile(const TileArgs& t) {
  const D d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  const int64_t tail = t.cols - (kVectors - 1) * lanes;
  hn::Vec<D> acc[kRows][kVectors];
  const float* row[kRows];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    row[i] = t.a + i * t.a_row;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      acc[i][v] = hn::Zero(d);
      if (kPacked) hwy::Prefetch(t.c + i * t.c_row + v * lanes);
    }
  }
  const float* b = t.b;
  int64_t at = 0;
  for (int64_t p = 0; p < t.k; ++p, b += t.b_row, at += t.a_col) {
    hn::Vec<D> bv[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      bv[v] = kPart && !kPacked && v == kVectors - 1 ? load_part(d, b + v * lanes, tail) : hn::LoadU(d, b + v * lanes);
      if (kPacked) hwy::Prefetch(b + 8 * kPanel + v * lanes);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const auto x = hn::Set(d, row[i][at]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) acc[i][v] = hn::MulAdd(x, bv[v], acc[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    float* c = t.c + i * t.c_row;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v, c += lanes) {
      const bool part = kPart && v == kVectors - 1;
      if (t.add) acc[i][v] = hn::Add(acc[i][v], part ? load_part(d, c, tail) : hn::LoadU(d, c));
      if (part) store_part(d, acc[i][v], c, tail);
      else hn::StoreU(acc[i][v], d, c);
    }
  }
}

using TileFn = void (*)(const TileArgs&);
// Tiles by rows - 1, vectors - 1, part. Rows up to 8 where one or two vectors leave registers free.
template <bool kPacked>
struct Tiles {
  TileFn fn[8][4][2];
};
template <bool kPacked, int kRows, int kVectors>
constexpr void add_tile(Tiles<kPacked>& t) {
  if constexpr (kVectors <= kMaxVectors && (kRows <= kMaxRows || (kVectors == 1 && kRows <= 8 && kMaxRows == 6))) {
    t.fn[kRows - 1][kVectors - 1][0] = tile<kRows, kVectors, false, kPacked>;
    t.fn[kRows - 1][kVectors - 1][1] = tile<kRows, kVectors, true, kPacked>;
  }
}
template <bool kPacked, int... kRows>
constexpr Tiles<kPacked> make_tiles(std::integer_sequence<int, kRows...>) {
  Tiles<kPacked> t{};
  (add_tile<kPacked, kRows + 1, 1>(t), ...);
  (add_tile<kPacked, kRows + 1, 2>(t), ...);
  (add_tile<kPacked, kRows + 1, 3>(t), ...);
  (add_tile<kPacked, kRows + 1, 4>(t), ...);
  return t;
}
constexpr Tiles<false> kPlainTiles = make_tiles<false>(std::make_integer_sequence<int, 8>{});
constexpr Tiles<true> kPackedTiles = make_tiles<true>(std::make_integer_sequence<int, 8>{});

HWY_INLINE int64_t rows_of_step(int64_t left, int vectors) {
  const int64_t most = vectors == 1 && kMaxRows == 6 ? 8 : kMaxRows;
  if (left <= most) return left;
  return left < 2 * most && left > most ? (left + 1) / 2 : most;  // two even steps rather than a full and a thin one
}

void small_product(const Product& p) {
  const int64_t lanes = int64_t(hn::Lanes(D()));
  alignas(64) float copy[kSmallSide * kSmallSide];
  const float* b = p.b;
  int64_t b_row = p.b_row;
  if (p.b_col != 1 && p.n > 1) {
    for (int64_t j = 0; j < p.n; ++j)
      for (int64_t q = 0; q < p.k; ++q) copy[q * p.n + j] = p.b[q * p.b_row + j * p.b_col];
    b = copy, b_row = p.n;
  }
  for (int64_t j = 0; j < p.n; j += kMaxVectors * lanes) {
    const int64_t cols = std::min<int64_t>(kMaxVectors * lanes, p.n - j);
    const int vectors = int((cols + lanes - 1) / lanes), part = cols % lanes != 0;
    for (int64_t i = 0; i < p.m;) {
      const int64_t rows = rows_of_step(p.m - i, vectors);
      kPlainTiles.fn[rows - 1][vectors - 1][part]({p.a + i * p.a_row, p.a_row, p.a_col, b + j, b_row, p.c + i * p.c_row + j, p.c_row, p.k, cols, false});
      i += rows;
    }
  }
}

// b[0..k) x [0..n) to panels of 64 columns, padded with zeros.
void pack_b(const float* b, int64_t b_row, int64_t b_col, int64_t k, int64_t n, float* out) {
  const D d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  for (int64_t j = 0; j < n; j += kPanel, out += k * kPanel) {
    const int64_t cols = std::min(kPanel, n - j);
    if (b_col == 1) {
      for (int64_t p = 0; p < k; ++p) {
        const float* from = b + p * b_row + j;
        float* to = out + p * kPanel;
        int64_t c = 0;
        hwy::Prefetch(from + 4 * b_row);
        for (; c + lanes <= cols; c += lanes) hn::StoreU(hn::LoadU(d, from + c), d, to + c);
        for (; c < cols; ++c) to[c] = from[c];
        for (; c < kPanel; ++c) to[c] = 0;
      }
      continue;
    }
    constexpr int64_t kBlock = 16;  // columns at a time: reads run along b's dense axis, writes stay in few lines
    for (int64_t p0 = 0; p0 < k; p0 += kBlock) {
      const int64_t p1 = std::min(k, p0 + kBlock);
      for (int64_t c = 0; c < cols; ++c)
        for (int64_t p = p0; p < p1; ++p) out[p * kPanel + c] = b[p * b_row + (j + c) * b_col];
      for (int64_t p = p0; p < p1; ++p)
        for (int64_t c = cols; c < kPanel; ++c) out[p * kPanel + c] = 0;
    }
  }
}

void large_product(const Product& p, float* packed) {
  const int64_t lanes = int64_t(hn::Lanes(D()));
  const int64_t step = kMaxVectors * lanes;
  alignas(64) float a_copy[kMaxRows * kDepth];
  if (p.k == 0)
    for (int64_t i = 0; i < p.m; ++i) std::fill_n(p.c + i * p.c_row, p.n, 0.0f);
  for (int64_t jc = 0; jc < p.n; jc += kWidth) {
    const int64_t nc = std::min(kWidth, p.n - jc);
    for (int64_t pc = 0; pc < p.k; pc += kDepth) {
      const int64_t kc = std::min(kDepth, p.k - pc);
      const float* block = packed;
      if (p.packed) block = p.packed + pc * p.packed_columns + (p.first_column + jc) * kc;
      else pack_b(p.b + pc * p.b_row + jc * p.b_col, p.b_row, p.b_col, kc, nc, packed);
      for (int64_t i = 0; i < p.m; i += kMaxRows) {
        const int64_t rows = std::min<int64_t>(kMaxRows, p.m - i);
        const float* a = p.a + i * p.a_row + pc * p.a_col;
        int64_t a_row = p.a_row, a_col = p.a_col;
        if (a_col != 1) {  // the tile reads rows of a
          for (int64_t q = 0; q < kc; ++q)
            for (int64_t r = 0; r < rows; ++r) a_copy[r * kDepth + q] = a[r * a_row + q * a_col];
          a = a_copy, a_row = kDepth, a_col = 1;
        } else {
          for (int64_t r = kMaxRows; r < 2 * kMaxRows && i + r < p.m; ++r)
            for (int64_t q = 0; q < kc; q += 16) hwy::Prefetch(a + r * a_row + q);
        }
        for (int64_t j = 0; j < nc; j += step) {
          const int64_t cols = std::min(step, nc - j);
          const int vectors = int((cols + lanes - 1) / lanes), part = cols % lanes != 0;
          const float* b = block + j / kPanel * kPanel * kc + j % kPanel;
          kPackedTiles.fn[rows - 1][vectors - 1][part]({a, a_row, a_col, b, kPanel, p.c + i * p.c_row + jc + j, p.c_row, kc, cols, pc > 0});
        }
      }
    }
  }
}

void pack_whole(const float* b, int64_t b_row, int64_t b_col, int64_t k, int64_t n, float* out) {
  const int64_t columns = (n + kPanel - 1) / kPanel * kPanel;
  for (int64_t pc = 0; pc < k; pc += kDepth) pack_b(b + pc * b_row, b_row, b_col, std::min(kDepth, k - pc), n, out + pc * columns);
}

const MatmulCode* code() {
  static constexpr MatmulCode kCode{small_product, large_product, pack_whole};
  return &kCode;
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/isa.h"
namespace tenon::cpu {
const MatmulCode& matmul_code(Isa isa) { return *TENON_CPU_PICK(isa, code)(); }
}  // namespace tenon::cpu
#endif
