// backends/cpu/amx/store.h - how A and B are laid out for the tiles. The layouts are amx.h's.
#pragma once
#include "backends/cpu/amx/target.h"

namespace tenon::cpu {

// 32 rows of A (fewer at the end: zeros) x `bytes` of depth: [step][32 rows][64 bytes].
TENON_AMX inline void store_a_panel(const char* a, int64_t a_row, int64_t rows, int64_t bytes, char* out) {
  const int64_t steps = (bytes + 63) / 64;
  for (int64_t r = 0; r < 32; ++r) {
    for (int64_t s = 0; s < steps; ++s) {
      const int64_t left = r < rows ? std::min<int64_t>(64, bytes - s * 64) : 0;
      const __mmask64 mask = left == 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
      const __m512i v = _mm512_maskz_loadu_epi8(mask, a + (left ? r * a_row + s * 64 : 0));
      _mm512_store_si512(out + s * kPanelBytes + r * 64, v);
    }
  }
}

// What of B[k,n] becomes panels of 32 columns: k in blocks of `depth`, n columns, elements of kSize bytes. Block after block,
// `block_bytes` apart in `out`, [panel][step][2 halves][16 groups][16 columns] with the 4 / kSize values of one column in each
// 32-bit lane. Works off one group of rows at a time, so that it can be done between the steps of a product.
template <int kSize>
struct StoreB {
  static constexpr int kGroup = 4 / kSize;         // rows that share a lane
  static constexpr int64_t kColumns = 64 / kSize;  // columns of one vector load
  static constexpr int64_t kAhead = 4;             // groups whose rows are fetched before they are due
  const char* b = nullptr;
  int64_t b_row = 0, k = 0, n = 0, depth = 0, block_bytes = 0;
  char* out = nullptr;
  int64_t left = 0;               // groups still to do
  int64_t group = 0, block = 0;   // the next one

  StoreB() = default;
  StoreB(const char* b, int64_t b_row, int64_t k, int64_t n, int64_t depth, int64_t block_bytes, char* out)
      : b(b), b_row(b_row), k(k), n(n), depth(depth), block_bytes(block_bytes), out(out), left((k * kSize + 63) / 64 * 16) {}

  TENON_AMX void some(int64_t count) {
    StoreB s = *this;  // a copy that no store may alias stays in registers
    for (; count > 0 && s.left > 0; --count, --s.left) {
      const int64_t in_block = std::min(s.depth, s.k - s.block * s.depth), steps = (in_block * kSize + 63) / 64;
      s.one(s.b + s.block * s.depth * s.b_row, in_block, steps * kPanelBytes, s.out + s.block * s.block_bytes);
      if (++s.group == steps * 16) s.group = 0, ++s.block;
    }
    left = s.left, group = s.group, block = s.block;
  }

 private:
  TENON_AMX void one(const char* from_block, int64_t in_block, int64_t panel, char* to_block) const {
    const char* row = from_block + group * kGroup * b_row;
    char* to = to_block + group / 16 * kPanelBytes + group % 16 * 64;
    for (int64_t j = 0; j < round_up(n, 32); j += kColumns) {
      const int64_t width = std::min(kColumns, n - j) * kSize;
      const __mmask64 columns = width >= 64 ? ~__mmask64{0} : width <= 0 ? 0 : (__mmask64{1} << width) - 1;
      __m512i v[kGroup];
      for (int i = 0; i < kGroup; ++i) {
        const bool inside = group * kGroup + i < in_block && width > 0;
        const char* from = inside ? row + i * b_row + j * kSize : b;
        v[i] = _mm512_maskz_loadu_epi8(inside ? columns : 0, from);
        _mm_prefetch(from + kAhead * kGroup * b_row, _MM_HINT_T0);
      }
      interleave(v, to + j / 32 * panel, panel, j + 32 < n);
    }
  }
  TENON_AMX static void interleave(const __m512i* row, char* to, int64_t panel, bool both_panels) {
    const __m512i by_quarters = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    const __m512i by_lanes = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    if constexpr (kGroup == 2) {
      const __m512i x = _mm512_permutexvar_epi64(by_quarters, row[0]), y = _mm512_permutexvar_epi64(by_quarters, row[1]);
      _mm512_store_si512(to, _mm512_unpacklo_epi16(x, y));
      _mm512_store_si512(to + 1024, _mm512_unpackhi_epi16(x, y));
    } else {
      __m512i v[4];
      for (int i = 0; i < 4; ++i) v[i] = _mm512_permutexvar_epi32(by_lanes, row[i]);
      const __m512i low01 = _mm512_unpacklo_epi8(v[0], v[1]), low23 = _mm512_unpacklo_epi8(v[2], v[3]);
      const __m512i high01 = _mm512_unpackhi_epi8(v[0], v[1]), high23 = _mm512_unpackhi_epi8(v[2], v[3]);
      _mm512_store_si512(to, _mm512_unpacklo_epi16(low01, low23));
      _mm512_store_si512(to + 1024, _mm512_unpackhi_epi16(low01, low23));
      if (!both_panels) return;
      _mm512_store_si512(to + panel, _mm512_unpacklo_epi16(high01, high23));
      _mm512_store_si512(to + panel + 1024, _mm512_unpackhi_epi16(high01, high23));
    }
  }
};

}  // namespace tenon::cpu
