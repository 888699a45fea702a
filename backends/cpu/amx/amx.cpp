// The AMX product. Every function that touches tiles or AVX-512 carries its own target attribute, so that this file holds
// no instruction beyond the baseline outside them.
//
// Blocks: C in 32 x 32 micro tiles (four tile registers); a panel of B, kDepthBytes deep and 32 columns wide, stays in L1;
// a block of A, kBlockRows x kDepthBytes, and the running sums of a kBlockRows x kBlockCols piece of C stay in L2. Where a block of A
// stays there in its whole depth, of up to kDeepBytes, all of that depth is done for one panel's columns before the next, so
// that running sums are those of 32 columns only.
#include "backends/cpu/amx/amx.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>

#define TENON_AMX __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-int8,amx-bf16")))

namespace tenon::cpu {
namespace {

constexpr int64_t kBlockRows = 512, kBlockCols = 512, kDepthBytes = kAmxDepthBytes;
constexpr int64_t kDeepBytes = 4 * kDepthBytes, kDeepBlockBytes = 1 << 20;  // of A
constexpr int64_t kGroupCols = 64;     // columns of B that are stored at a time there
constexpr int64_t kPanelBytes = 2048;  // one k step (64 bytes of each row of A) of a panel of 32 rows or columns

int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_per_row[16] = {};
  uint8_t rows[16] = {};
};
TENON_AMX void configure_tiles() {
  TileConfig config;
  for (int i = 0; i < 8; ++i) config.bytes_per_row[i] = 64, config.rows[i] = 16;
  _tile_loadconfig(&config);
  __asm__ volatile("" ::"r"(&config) : "memory");
}
TENON_AMX void release_tiles() { _tile_release(); }
// The tile intrinsics do not tell the compiler which memory they read and write.
inline void fence_compiler() { __asm__ volatile("" ::: "memory"); }

// 32 rows of A (fewer at the end: zeros) x `bytes` of depth: [step][32 rows][64 bytes].
TENON_AMX void pack_a_panel(const char* a, int64_t a_row, int64_t rows, int64_t bytes, char* out) {
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

// `depth` rows of B (elements of kSize bytes) x n columns: [panel of 32 columns][step][2 halves][16 groups][16 columns]
// with the 4 / kSize values of one column in each 32-bit lane.
template <int kSize>
TENON_AMX void pack_b(const char* b, int64_t b_row, int64_t depth, int64_t n, char* out) {
  constexpr int kGroup = 4 / kSize;               // rows that share a lane
  constexpr int64_t kColumns = 64 / kSize;        // columns of one vector load
  const int64_t steps = (depth * kSize + 63) / 64, panel = steps * kPanelBytes;
  const __m512i by_quarters = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  const __m512i by_lanes = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  for (int64_t g = 0; g < steps * 16; ++g) {
    for (int64_t j = 0; j < round_up(n, 32); j += kColumns) {
      const int64_t left = std::min(kColumns, n - j) * kSize;
      const __mmask64 columns = left >= 64 ? ~__mmask64{0} : left <= 0 ? 0 : (__mmask64{1} << left) - 1;
      __m512i row[kGroup];
      for (int i = 0; i < kGroup; ++i) {
        const bool inside = g * kGroup + i < depth && left > 0;
        const char* from = b + (inside ? (g * kGroup + i) * b_row + j * kSize : 0);
        row[i] = _mm512_maskz_loadu_epi8(inside ? columns : 0, from);
        _mm_prefetch(from + kGroup * b_row, _MM_HINT_T0);
      }
      char* to = out + j / 32 * panel + g / 16 * kPanelBytes + g % 16 * 64;
      if constexpr (kGroup == 2) {
        const __m512i x = _mm512_permutexvar_epi64(by_quarters, row[0]), y = _mm512_permutexvar_epi64(by_quarters, row[1]);
        _mm512_store_si512(to, _mm512_unpacklo_epi16(x, y));
        _mm512_store_si512(to + 1024, _mm512_unpackhi_epi16(x, y));
      } else {
        for (__m512i& v : row) v = _mm512_permutexvar_epi32(by_lanes, v);
        const __m512i low01 = _mm512_unpacklo_epi8(row[0], row[1]), low23 = _mm512_unpacklo_epi8(row[2], row[3]);
        const __m512i high01 = _mm512_unpackhi_epi8(row[0], row[1]), high23 = _mm512_unpackhi_epi8(row[2], row[3]);
        _mm512_store_si512(to, _mm512_unpacklo_epi16(low01, low23));
        _mm512_store_si512(to + 1024, _mm512_unpackhi_epi16(low01, low23));
        if (j + 32 >= n) continue;
        _mm512_store_si512(to + panel, _mm512_unpacklo_epi16(high01, high23));
        _mm512_store_si512(to + panel + 1024, _mm512_unpackhi_epi16(high01, high23));
      }
    }
  }
}

struct Micro {
  const char* a; int64_t a_row, a_step;  // rows lie a_row bytes apart, k steps a_step
  const char* b;                         // one panel
  const char* c;                         // running sums, NULL for the first depth
  char* out;                             // 4 tiles of 1 KiB
  int64_t steps;
  // To bring to L2 while the tiles work: at each step so many bytes from `next` on, which then moves on. And rows of C.
  const char* next; int64_t next_bytes, next_step;
  const char* next_c = nullptr; int64_t c_row = 0;
};
// C's tiles and A go through the streaming loads, which leave L1 to the panel of B. Tile numbers must be literals.
template <bool kBf16>
TENON_AMX void micro_tile(const Micro& m) {
  if (m.c) {
    _tile_stream_loadd(0, m.c, 64);
    _tile_stream_loadd(1, m.c + 1024, 64);
    _tile_stream_loadd(2, m.c + 2048, 64);
    _tile_stream_loadd(3, m.c + 3072, 64);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const char* a = m.a;
  const char* a_low = m.a + 16 * m.a_row;
  const char* b = m.b;
  const char* ahead = m.next;
  const char* c_ahead = m.next_c;
  for (int64_t s = 0; s < m.steps; ++s, a += m.a_step, a_low += m.a_step, b += kPanelBytes, ahead += m.next_step) {
    _tile_stream_loadd(4, a, m.a_row);
    _tile_loadd(6, b, 64);
    if constexpr (kBf16) _tile_dpbf16ps(0, 4, 6); else _tile_dpbusd(0, 4, 6);
    _tile_loadd(7, b + 1024, 64);
    if constexpr (kBf16) _tile_dpbf16ps(1, 4, 7); else _tile_dpbusd(1, 4, 7);
    _tile_stream_loadd(5, a_low, m.a_row);
    if constexpr (kBf16) _tile_dpbf16ps(2, 5, 6); else _tile_dpbusd(2, 5, 6);
    if constexpr (kBf16) _tile_dpbf16ps(3, 5, 7); else _tile_dpbusd(3, 5, 7);
    for (int64_t i = 0; i < m.next_bytes; i += 64) _mm_prefetch(ahead + i, _MM_HINT_T1);
    if (c_ahead) {
      _mm_prefetch(c_ahead, _MM_HINT_T1);
      _mm_prefetch(c_ahead + m.c_row, _MM_HINT_T1);
      c_ahead += 2 * m.c_row;
    }
  }
  _tile_stored(0, m.out, 64);
  _tile_stored(1, m.out + 1024, 64);
  _tile_stored(2, m.out + 2048, 64);
  _tile_stored(3, m.out + 3072, 64);
}

// A finished micro tile to C, as 32-bit values or rounded to bf16.
TENON_AMX void store_wide(const char* tiles, char* c, int64_t c_row, int64_t rows, int64_t cols, bool stream) {
  for (int64_t r = 0; r < std::min<int64_t>(rows, 32); ++r, c += c_row) {
    const char* from = tiles + r / 16 * 2048 + r % 16 * 64;
    for (int64_t h = 0; h < 2 && cols > h * 16; ++h) {
      const __m512i v = _mm512_load_si512(from + h * 1024);
      if (stream && cols >= h * 16 + 16) _mm512_stream_si512(reinterpret_cast<__m512i*>(c + h * 64), v);
      else _mm512_mask_storeu_epi32(c + h * 64, cols >= h * 16 + 16 ? 0xFFFF : (1u << (cols - h * 16)) - 1, v);
    }
  }
}
// To bf16, nearest even; NaN stays NaN and subnormals are kept (the bf16 instruction would flush them).
TENON_AMX __m256i to_bf16(__m512 x) {
  const __m512i u = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF))), 16);
  const __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(0x40));
  return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), quiet));
}
TENON_AMX void store_bf16(const char* tiles, char* c, int64_t c_row, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < std::min<int64_t>(rows, 32); ++r, c += c_row) {
    const char* from = tiles + r / 16 * 2048 + r % 16 * 64;
    for (int64_t h = 0; h < 2 && cols > h * 16; ++h)
      _mm256_mask_storeu_epi16(c + h * 32, __mmask16(cols >= h * 16 + 16 ? 0xFFFF : (1u << (cols - h * 16)) - 1), to_bf16(_mm512_load_ps(from + h * 1024)));
  }
}

struct Sizes {
  int64_t element, depth, k_padded, n_padded, block_rows, a_bytes, b_bytes, c_bytes;
  bool deep;
  explicit Sizes(const AmxProduct& p) {
    element = p.bf16 ? 2 : 1;
    depth = kDepthBytes / element;
    k_padded = round_up(p.k * element, 64);
    n_padded = round_up(p.n, 32);
    deep = k_padded > kDepthBytes && k_padded <= kDeepBytes;
    block_rows = deep ? std::min(kBlockRows, kDeepBlockBytes / k_padded / 32 * 32) : kBlockRows;
    a_bytes = round_up(std::min(p.m, block_rows), 32) * k_padded + 4096;
    // With several row blocks all of packed B is kept, else one block of it.
    const int64_t one = deep ? k_padded * kGroupCols : kDepthBytes * kBlockCols;
    b_bytes = p.packed ? 0 : (p.m > block_rows ? k_padded * round_up(p.n, kGroupCols) : one) + 4096 + kPanelBytes * 16;
    c_bytes = (deep ? block_rows * 32 : kBlockRows * kBlockCols) * 4 + 4096;
  }
};

// One row block x column block, over the whole depth.
template <bool kBf16>
TENON_AMX void block_product(const AmxProduct& p, const Sizes& z, int64_t ic, int64_t jc, char* packed_a, char* packed_b, char* sums, bool stream) {
  alignas(64) char done[4096];
  const int64_t mc = std::min(kBlockRows, p.m - ic), nc = std::min(kBlockCols, p.n - jc);
  const int64_t rows_padded = round_up(mc, 32), cols_padded = round_up(nc, 32);
  const bool keep_b = p.m > kBlockRows;
  // Rows that lie close together and need no padding are read in place.
  const bool direct = p.m % 32 == 0 && p.k * z.element % 64 == 0 && p.a_row <= 1024;
  for (int64_t pc = 0; pc < p.k; pc += z.depth) {
    const int64_t depth = std::min(z.depth, p.k - pc), steps = (depth * z.element + 63) / 64;
    const bool last = pc + z.depth >= p.k;
    char* b_block = packed_b + (keep_b ? jc * z.k_padded + cols_padded * pc * z.element : 0);
    if (p.packed) {
      b_block = const_cast<char*>(p.packed) + pc * z.element * p.packed_columns + (p.first_column + jc) / 32 * steps * kPanelBytes;
    } else if (!keep_b || ic == 0) {
      pack_b<kBf16 ? 2 : 1>(p.b + pc * p.b_row + jc * z.element, p.b_row, depth, nc, b_block);
    }
    for (int64_t jr = 0; jr < nc; jr += 32) {
      const char* panel = b_block + jr / 32 * steps * kPanelBytes;
      const int64_t share = round_up(65536 / rows_padded, 64);
      for (int64_t ir = 0; ir < mc; ir += 32) {
        char* sum = sums + (jr / 32 * (kBlockRows / 32) + ir / 32) * 4096;
        char* a_panel = packed_a + rows_padded * pc * z.element + ir / 32 * steps * kPanelBytes;
        const char* raw = p.a + (ic + ir) * p.a_row + pc * z.element;
        if (!direct && jc == 0 && jr == 0) pack_a_panel(raw, p.a_row, std::min<int64_t>(32, mc - ir), depth * z.element, a_panel);
        fence_compiler();
        micro_tile<kBf16>({direct ? raw : a_panel, direct ? p.a_row : 64, direct ? 64 : kPanelBytes, panel, pc ? sum : nullptr, last ? done : sum, steps,
                           panel + steps * (kPanelBytes + ir / 32 * share), share, share});
        fence_compiler();
        if (!last) continue;
        char* c = p.c + (ic + ir) * p.c_row + (jc + jr) * (p.narrow_out ? 2 : 4);
        if (p.narrow_out) store_bf16(done, c, p.c_row, mc - ir, nc - jr);
        else store_wide(done, c, p.c_row, mc - ir, nc - jr, stream);
      }
    }
  }
}

// One row block x all columns, the depth innermost but for the rows. What is needed next is fetched meanwhile: the rows of B
// that the next group will be stored from, or the next stored panel.
template <bool kBf16>
struct Deep {
  const AmxProduct& p;
  const Sizes& z;
  int64_t ic;
  char *packed_a, *packed_b, *sums;
  bool stream;
  int64_t mc = std::min(z.block_rows, p.m - ic), rows_padded = round_up(mc, 32), out = p.narrow_out ? 2 : 4;
  bool keep_b = p.m > z.block_rows, store_b = !p.packed && (!keep_b || ic == 0);

  int64_t steps_at(int64_t pc) const { return (std::min(z.depth, p.k - pc) * z.element + 63) / 64; }
  char* group_of(int64_t jr) const { return packed_b + (keep_b ? jr / kGroupCols * kGroupCols * z.k_padded : 0); }
  const char* panel_at(int64_t jr, int64_t pc) const {
    if (p.packed) return p.packed + pc * z.element * p.packed_columns + (p.first_column + jr) / 32 * steps_at(pc) * kPanelBytes;
    return group_of(jr) + pc * z.element * kGroupCols + jr % kGroupCols / 32 * steps_at(pc) * kPanelBytes;
  }
  TENON_AMX void store_group(int64_t jr) const {
    for (int64_t pc = 0; pc < p.k; pc += z.depth)
      pack_b<kBf16 ? 2 : 1>(p.b + pc * p.b_row + jr * z.element, p.b_row, std::min(z.depth, p.k - pc), std::min(kGroupCols, p.n - jr), group_of(jr) + pc * z.element * kGroupCols);
  }
  // For the micro tile of these rows: its share of what comes next.
  void look_ahead(Micro* m, int64_t jr, int64_t pc, int64_t ir) const {
    if (store_b) {
      const int64_t blocks = (p.k + z.depth - 1) / z.depth, tiles = rows_padded / 32;  // a group's micro tiles: 2 * blocks * tiles
      const int64_t row = ((jr % kGroupCols / 32 * blocks + pc / z.depth) * tiles + ir / 32) * m->steps, next = jr / kGroupCols * kGroupCols + kGroupCols;
      if (next >= p.n || row + m->steps > p.k) return;
      m->next = p.b + row * p.b_row + next * z.element, m->next_bytes = kGroupCols * z.element, m->next_step = p.b_row;
      return;
    }
    const bool same = pc + z.depth < p.k;
    if (!same && jr + 32 >= p.n) return;
    const int64_t share = round_up(65536 / rows_padded, 64);
    m->next = (same ? panel_at(jr, pc + z.depth) : panel_at(jr + 32, 0)) + ir / 32 * m->steps * share, m->next_bytes = m->next_step = share;
  }
  TENON_AMX void run() const {
    alignas(64) char done[4096];
    for (int64_t jr = 0; jr < p.n; jr += 32) {
      if (store_b && jr % kGroupCols == 0) store_group(jr);
      for (int64_t pc = 0; pc < p.k; pc += z.depth) {
        const int64_t steps = steps_at(pc);
        const bool last = pc + z.depth >= p.k;
        for (int64_t ir = 0; ir < mc; ir += 32) {
          char* sum = sums + ir / 32 * 4096;
          char* a_panel = packed_a + rows_padded * pc * z.element + ir / 32 * steps * kPanelBytes;
          char* c = p.c + (ic + ir) * p.c_row + jr * out;
          if (jr == 0) pack_a_panel(p.a + (ic + ir) * p.a_row + pc * z.element, p.a_row, std::min<int64_t>(32, mc - ir), std::min(z.depth, p.k - pc) * z.element, a_panel);
          Micro m{a_panel, 64, kPanelBytes, panel_at(jr, pc), pc ? sum : nullptr, last ? done : sum, steps, nullptr, 0, 0};
          look_ahead(&m, jr, pc, ir);
          if (last && p.narrow_out && mc - ir >= 2 * steps) m.next_c = c, m.c_row = p.c_row;
          fence_compiler();
          micro_tile<kBf16>(m);
          fence_compiler();
          if (!last) continue;
          if (p.narrow_out) store_bf16(done, c, p.c_row, mc - ir, p.n - jr);
          else store_wide(done, c, p.c_row, mc - ir, p.n - jr, stream);
        }
      }
    }
  }
};
TENON_AMX void fence_stores() { _mm_sfence(); }

}  // namespace

int64_t amx_scratch_bytes(const AmxProduct& p) {
  const Sizes z(p);
  return round_up(z.a_bytes, 4096) + round_up(z.b_bytes, 4096) + round_up(z.c_bytes, 4096);
}

void amx_product(const AmxProduct& p, char* scratch) {
  const Sizes z(p);
  const int64_t out_size = p.narrow_out ? 2 : 4;
  if (p.k == 0) {
    for (int64_t i = 0; i < p.m; ++i) std::memset(p.c + i * p.c_row, 0, size_t(p.n * out_size));
    return;
  }
  char* packed_a = scratch;
  char* packed_b = packed_a + round_up(z.a_bytes, 4096);
  char* sums = packed_b + round_up(z.b_bytes, 4096);
  const bool stream = !p.narrow_out && p.m * p.n * 4 > (1 << 20) && p.c_row % 64 == 0 && reinterpret_cast<uintptr_t>(p.c) % 64 == 0;
  configure_tiles();
  for (int64_t ic = 0; z.deep && ic < p.m; ic += z.block_rows)
    p.bf16 ? Deep<true>{p, z, ic, packed_a, packed_b, sums, stream}.run() : Deep<false>{p, z, ic, packed_a, packed_b, sums, stream}.run();
  for (int64_t ic = 0; !z.deep && ic < p.m; ic += kBlockRows)
    for (int64_t jc = 0; jc < p.n; jc += kBlockCols)
      p.bf16 ? block_product<true>(p, z, ic, jc, packed_a, packed_b, sums, stream) : block_product<false>(p, z, ic, jc, packed_a, packed_b, sums, stream);
  release_tiles();
  if (stream) fence_stores();
}

}  // namespace tenon::cpu

#else

namespace tenon::cpu {
int64_t amx_scratch_bytes(const AmxProduct&) { return 0; }
void amx_product(const AmxProduct&, char*) {}  // detect_amx() is false here, so that no plan is ever made
}  // namespace tenon::cpu

#endif
