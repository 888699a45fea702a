#include "tools/bench/tiles.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TENON_AMX __attribute__((target("amx-tile,amx-int8,amx-bf16")))

namespace tenon::bench {
namespace {

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_per_row[16] = {};
  uint8_t rows[16] = {};
};

TENON_AMX void configure() {
  TileConfig config;
  for (int i = 0; i < 8; ++i) config.bytes_per_row[i] = 64, config.rows[i] = 16;
  _tile_loadconfig(&config);
  __asm__ volatile("" ::"r"(&config) : "memory");
}

}  // namespace

bool have_tiles() {
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM of Linux; XTILEDATA
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

// The step of a product of two by two tiles: four loads and four products. Eight tile registers allow no shape of fewer loads a
// product. What is loaded always lies in L1. Tile numbers must be literals.
TENON_AMX void spin_tiles(int64_t pieces, bool bf16) {
  alignas(4096) static const char kOperands[4096] = {};
  const char *a = kOperands, *b = kOperands + 2048;
  configure();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t i = 0; i < pieces; i += 4) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    if (bf16) _tile_dpbf16ps(0, 4, 6); else _tile_dpbusd(0, 4, 6);
    _tile_loadd(7, b + 1024, 64);
    if (bf16) _tile_dpbf16ps(1, 4, 7); else _tile_dpbusd(1, 4, 7);
    _tile_loadd(5, a + 1024, 64);
    if (bf16) _tile_dpbf16ps(2, 5, 6); else _tile_dpbusd(2, 5, 6);
    if (bf16) _tile_dpbf16ps(3, 5, 7); else _tile_dpbusd(3, 5, 7);
  }
  _tile_release();
}

}  // namespace tenon::bench

#else

namespace tenon::bench {
bool have_tiles() { return false; }
void spin_tiles(int64_t, bool) {}  // have_tiles() is false here
}  // namespace tenon::bench

#endif
