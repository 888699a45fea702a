// The AMX product.
//
// Blocks: C in 32 x 32 micro tiles (four tile registers); a panel of B, kDepthBytes deep and 32 columns wide, stays in L1. Two
// orders of loops:
// Deep, more than kDepthBytes and up to kDeepBytes of depth: a block of A in its whole depth stays in L2, and all of that depth is done for
//   one panel's columns before the next, so that running sums are those of 32 columns only. A step of a micro tile keeps the tile
//   unit busy for 64 cycles and leaves the rest of the core idle. There the side work is done: the previous micro tile's way to
//   C, and the storing of the columns of B that come next.
// Blocked, else: the running sums of a kBlockRows x kBlockCols piece of C stay in L2. No side work: in a depth of one panel, where
//   all is in L2, the instructions between the steps cost more than they save (512: 1 to 10 % slower).
#include "backends/cpu/amx/amx.h"

#include <cstring>

#if defined(__x86_64__)
#include "backends/cpu/amx/finish.h"
#include "backends/cpu/amx/store.h"

namespace tenon::cpu {
namespace {

constexpr int64_t kBlockRows = 512, kBlockCols = 512, kDepthBytes = kAmxDepthBytes;
constexpr int64_t kDeepBytes = 4 * kDepthBytes, kDeepBlockRows = 256;  // of A: at most 1 MiB
constexpr int64_t kGroupCols = 64;  // columns of B that are stored at a time there

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

struct Micro {
  const char* a; int64_t a_row, a_step;  // rows lie a_row bytes apart, k steps a_step
  const char* b;                         // one panel
  const char* c;                         // running sums, NULL for the first depth
  char* out;                             // 4 tiles of 1 KiB; may be what `finish` reads
  int64_t steps;
  // To bring to L2 while the tiles work: at each step so many bytes from `next` on, which then moves on. And rows of C.
  const char* next = nullptr; int64_t next_bytes = 0;
  const char* next_c = nullptr; int64_t c_row = 0;
};
int64_t share(int64_t all, int64_t parts) { return (all + parts - 1) / parts; }

// Side work of a micro tile: all of `finish`, and `groups` of `store`.
template <class Store>
struct Beside {
  Finish* finish;
  Store* store;
  int64_t rows_a_step, groups, groups_a_step;
  Beside(Finish* f, Store* s, int64_t groups, int64_t steps) : finish(f), store(s), rows_a_step(share(32, steps)), groups(groups), groups_a_step(share(groups, steps)) {}
  TENON_AMX void step() {
    finish->some(rows_a_step);
    store->some(std::min(groups, groups_a_step));
    groups -= groups_a_step;
  }
};
struct Nothing {
  void step() const {}
};

// C's tiles and A go through the streaming loads, which leave L1 to the panel of B. Tile numbers must be literals.
template <bool kBf16, class Side>
TENON_AMX void micro_tile(const Micro& m, Side side) {
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
  for (int64_t s = 0; s < m.steps; ++s, a += m.a_step, a_low += m.a_step, b += kPanelBytes, ahead += m.next_bytes) {
    _tile_stream_loadd(4, a, m.a_row);
    _tile_loadd(6, b, 64);
    if constexpr (kBf16) _tile_dpbf16ps(0, 4, 6); else _tile_dpbusd(0, 4, 6);
    _tile_loadd(7, b + 1024, 64);
    if constexpr (kBf16) _tile_dpbf16ps(1, 4, 7); else _tile_dpbusd(1, 4, 7);
    _tile_stream_loadd(5, a_low, m.a_row);
    if constexpr (kBf16) _tile_dpbf16ps(2, 5, 6); else _tile_dpbusd(2, 5, 6);
    if constexpr (kBf16) _tile_dpbf16ps(3, 5, 7); else _tile_dpbusd(3, 5, 7);
    side.step();
    for (int64_t i = 0; i < m.next_bytes; i += 64) _mm_prefetch(ahead + i, _MM_HINT_T1);
    if (c_ahead) {
      _mm_prefetch(c_ahead, _MM_HINT_T1);
      _mm_prefetch(c_ahead + m.c_row, _MM_HINT_T1);
      c_ahead += 2 * m.c_row;
    }
  }
  fence_compiler();
  _tile_stored(0, m.out, 64);
  _tile_stored(1, m.out + 1024, 64);
  _tile_stored(2, m.out + 2048, 64);
  _tile_stored(3, m.out + 3072, 64);
  fence_compiler();
}

struct Sizes {
  int64_t element, depth, k_padded, block_rows, a_bytes, b_bytes, c_bytes;
  bool deep;
  explicit Sizes(const AmxProduct& p) {
    element = p.bf16 ? 2 : 1;
    depth = kDepthBytes / element;
    k_padded = round_up(std::max<int64_t>(p.k, 1) * element, 64);
    deep = k_padded > kDepthBytes && k_padded <= kDeepBytes;
    // Half as many rows leave less of A to be stored before the tiles can begin; but B passes by twice as often.
    block_rows = deep ? kDeepBlockRows : kBlockRows;
    a_bytes = round_up(std::min(p.m, block_rows), 32) * k_padded + 4096;
    // With several row blocks all of packed B is kept, else the group or block in use and, where storing runs ahead, the next.
    const int64_t some = deep ? 2 * k_padded * kGroupCols : kDepthBytes * kBlockCols;
    b_bytes = p.packed ? 0 : (p.m > block_rows ? k_padded * round_up(p.n, kGroupCols) : some) + 4096 + kPanelBytes * 16;
    c_bytes = (deep ? block_rows * 32 : kBlockRows * kBlockCols) * 4 + 4096;
  }
};

// What both orders of loops share.
template <bool kBf16>
struct Product {
  using Store = StoreB<kBf16 ? 2 : 1>;
  const AmxProduct& p;
  const Sizes& z;
  char *packed_a, *packed_b, *sums, *done;
  bool stream;
  Finish finish;
  Store store;

  // Rows that lie close together and need no padding are read in place.
  bool direct() const { return p.m % 32 == 0 && p.k * z.element % 64 == 0 && p.a_row <= 1024; }
  int64_t steps_at(int64_t pc) const { return (std::min(z.depth, p.k - pc) * z.element + 63) / 64; }
  char* c_at(int64_t row, int64_t col) const { return p.c + row * p.c_row + col * (p.narrow_out ? 2 : 4); }
  void finish_next(int64_t row, int64_t col) {
    finish = {done, c_at(row, col), p.c_row, std::min<int64_t>(32, p.m - row), std::min<int64_t>(32, p.n - col), p.narrow_out, stream};
  }
};

// One row block x column block, over the whole depth.
template <bool kBf16>
struct Blocked : Product<kBf16> {
  using Base = Product<kBf16>;
  using Base::p, Base::z, Base::packed_a, Base::packed_b, Base::sums, Base::done;

  TENON_AMX char* block_of_b(int64_t ic, int64_t jc, int64_t pc) const {
    const int64_t cols = std::min(kBlockCols, p.n - jc), depth = std::min(z.depth, p.k - pc);
    if (p.packed) return const_cast<char*>(p.packed) + pc * z.element * p.packed_columns + (p.first_column + jc) / 32 * this->steps_at(pc) * kPanelBytes;
    const bool keep = p.m > kBlockRows;
    char* block = packed_b + (keep ? jc * z.k_padded + round_up(cols, 32) * pc * z.element : 0);
    if (!keep || ic == 0) typename Base::Store(p.b + pc * p.b_row + jc * z.element, p.b_row, depth, cols, depth, 0, block).some(INT64_MAX);
    return block;
  }
  TENON_AMX void run(int64_t ic, int64_t jc) {
    const int64_t mc = std::min(kBlockRows, p.m - ic), nc = std::min(kBlockCols, p.n - jc), rows_padded = round_up(mc, 32);
    for (int64_t pc = 0; pc < p.k; pc += z.depth) {
      const char* block = block_of_b(ic, jc, pc);
      for (int64_t jr = 0; jr < nc; jr += 32)
        for (int64_t ir = 0; ir < mc; ir += 32) one(ic, jc, pc, ir, jr, rows_padded, block);
    }
  }

 private:
  TENON_AMX void one(int64_t ic, int64_t jc, int64_t pc, int64_t ir, int64_t jr, int64_t rows_padded, const char* block) {
    const int64_t steps = this->steps_at(pc), bytes = std::min(z.depth, p.k - pc) * z.element, ahead = round_up(65536 / rows_padded, 64);
    const bool last = pc + z.depth >= p.k, direct = this->direct();
    char* sum = sums + (jr / 32 * (kBlockRows / 32) + ir / 32) * 4096;
    char* a_panel = packed_a + rows_padded * pc * z.element + ir / 32 * steps * kPanelBytes;
    const char* raw = p.a + (ic + ir) * p.a_row + pc * z.element;
    const char* panel = block + jr / 32 * steps * kPanelBytes;
    if (!direct && jc == 0 && jr == 0) store_a_panel(raw, p.a_row, std::min<int64_t>(32, p.m - ic - ir), bytes, a_panel);
    micro_tile<kBf16>({direct ? raw : a_panel, direct ? p.a_row : 64, direct ? 64 : kPanelBytes, panel, pc ? sum : nullptr, last ? done : sum, steps,
                       panel + steps * (kPanelBytes + ir / 32 * ahead), ahead}, Nothing());
    if (!last) return;
    this->finish_next(ic + ir, jc + jr);
    this->finish.rest();
  }
};

// One row block x all columns, the depth innermost but for the rows. While one group of columns is worked on, the next is
// stored; where all is stored already, the next panel is fetched.
template <bool kBf16>
struct Deep : Product<kBf16> {
  using Base = Product<kBf16>;
  using Base::p, Base::z, Base::packed_a, Base::packed_b, Base::sums, Base::done, Base::store;
  int64_t ic = 0, mc = 0, rows_padded = 0, groups_a_tile = 0;
  bool keep_b = false, store_b = false;

  char* group_of(int64_t jr) const { return packed_b + (keep_b ? jr / kGroupCols : jr / kGroupCols % 2) * kGroupCols * z.k_padded; }
  const char* panel_at(int64_t jr, int64_t pc) const {
    if (p.packed) return p.packed + pc * z.element * p.packed_columns + (p.first_column + jr) / 32 * this->steps_at(pc) * kPanelBytes;
    return group_of(jr) + pc * z.element * kGroupCols + jr % kGroupCols / 32 * this->steps_at(pc) * kPanelBytes;
  }
  // From the column jr on, unless there is none.
  void store_next(int64_t jr) {
    store = {};
    if (jr < p.n) store = {p.b + jr * z.element, p.b_row, p.k, std::min(kGroupCols, p.n - jr), z.depth, z.depth * z.element * kGroupCols, group_of(jr)};
  }
  TENON_AMX void run(int64_t first_row) {
    ic = first_row, mc = std::min(z.block_rows, p.m - ic), rows_padded = round_up(mc, 32);
    keep_b = p.m > z.block_rows, store_b = !p.packed && ic == 0;
    const int64_t depths = (p.k + z.depth - 1) / z.depth, tiles = kGroupCols / 32 * depths * (rows_padded / 32);
    groups_a_tile = store_b ? share(z.k_padded / 4, tiles) : 0;
    if (store_b) store_next(0);
    for (int64_t jr = 0; jr < p.n; jr += 32) {
      if (store_b && jr % kGroupCols == 0) store.some(store.left), store_next(jr + kGroupCols);
      for (int64_t pc = 0; pc < p.k; pc += z.depth)
        for (int64_t ir = 0; ir < mc; ir += 32) one(jr, pc, ir);
    }
    this->finish.rest();
  }

 private:
  TENON_AMX void one(int64_t jr, int64_t pc, int64_t ir) {
    const int64_t steps = this->steps_at(pc), bytes = std::min(z.depth, p.k - pc) * z.element;
    const bool last = pc + z.depth >= p.k, direct = this->direct();
    char* sum = sums + ir / 32 * 4096;
    char* a_panel = packed_a + rows_padded * pc * z.element + ir / 32 * steps * kPanelBytes;
    const char* raw = p.a + (ic + ir) * p.a_row + pc * z.element;
    if (!direct && jr == 0) store_a_panel(raw, p.a_row, std::min<int64_t>(32, mc - ir), bytes, a_panel);
    Micro m{direct ? raw : a_panel, direct ? p.a_row : 64, direct ? 64 : kPanelBytes, panel_at(jr, pc), pc ? sum : nullptr, last ? done : sum, steps};
    if (!store_b) look_ahead(&m, jr, pc, ir);
    if (last && !this->stream && p.narrow_out && mc - ir >= 2 * steps) m.next_c = this->c_at(ic + ir, jr), m.c_row = p.c_row;
    micro_tile<kBf16>(m, Beside(&this->finish, &store, groups_a_tile, steps));
    if (last) this->finish_next(ic + ir, jr);
  }
  // This micro tile's share of the next panel.
  void look_ahead(Micro* m, int64_t jr, int64_t pc, int64_t ir) const {
    const bool same = pc + z.depth < p.k;
    if (!same && jr + 32 >= p.n) return;
    const int64_t bytes = round_up(65536 / rows_padded, 64);
    m->next = (same ? panel_at(jr, pc + z.depth) : panel_at(jr + 32, 0)) + ir / 32 * m->steps * bytes, m->next_bytes = bytes;
  }
};

template <bool kBf16>
TENON_AMX void product(const AmxProduct& p, const Sizes& z, char* scratch) {
  alignas(64) char done[4096];
  char* packed_a = scratch;
  char* packed_b = packed_a + round_up(z.a_bytes, 4096);
  char* sums = packed_b + round_up(z.b_bytes, 4096);
  const bool stream = p.m * p.n * (p.narrow_out ? 2 : 4) > (1 << 20) && p.c_row % 64 == 0 && reinterpret_cast<uintptr_t>(p.c) % 64 == 0;
  const Product<kBf16> base{p, z, packed_a, packed_b, sums, done, stream, {}, {}};
  if (z.deep) {
    Deep<kBf16> deep{base};
    for (int64_t ic = 0; ic < p.m; ic += z.block_rows) deep.run(ic);
  } else {
    Blocked<kBf16> blocked{base};
    for (int64_t ic = 0; ic < p.m; ic += kBlockRows)
      for (int64_t jc = 0; jc < p.n; jc += kBlockCols) blocked.run(ic, jc);
  }
  if (stream) _mm_sfence();
}

}  // namespace

int64_t amx_scratch_bytes(const AmxProduct& p) {
  const Sizes z(p);
  return round_up(z.a_bytes, 4096) + round_up(z.b_bytes, 4096) + round_up(z.c_bytes, 4096);
}

void amx_product(const AmxProduct& p, char* scratch) {
  if (p.k == 0) {
    for (int64_t i = 0; i < p.m; ++i) std::memset(p.c + i * p.c_row, 0, size_t(p.n * (p.narrow_out ? 2 : 4)));
    return;
  }
  const Sizes z(p);
  configure_tiles();
  if (p.bf16) product<true>(p, z, scratch);
  else product<false>(p, z, scratch);
  release_tiles();
}

}  // namespace tenon::cpu

#else

namespace tenon::cpu {
int64_t amx_scratch_bytes(const AmxProduct&) { return 0; }
void amx_product(const AmxProduct&, char*) {}  // detect_amx() is false here, so that no plan is ever made
}  // namespace tenon::cpu

#endif
