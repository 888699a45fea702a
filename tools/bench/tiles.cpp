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

// Six sums, so that none waits for its own last product: one takes about 52 cycles, a new one may begin every 16. Tile numbers
// must be literals.
TENON_AMX void spin_tiles(int64_t pieces, bool bf16) {
  alignas(64) static const char kZeros[1024] = {};
  configure();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_loadd(6, kZeros, 64);
  _tile_loadd(7, kZeros, 64);
  for (int64_t i = 0; i < pieces; i += 6) {
    if (bf16) {
      _tile_dpbf16ps(0, 6, 7);
      _tile_dpbf16ps(1, 6, 7);
      _tile_dpbf16ps(2, 6, 7);
      _tile_dpbf16ps(3, 6, 7);
      _tile_dpbf16ps(4, 6, 7);
      _tile_dpbf16ps(5, 6, 7);
    } else {
      _tile_dpbusd(0, 6, 7);
      _tile_dpbusd(1, 6, 7);
      _tile_dpbusd(2, 6, 7);
      _tile_dpbusd(3, 6, 7);
      _tile_dpbusd(4, 6, 7);
      _tile_dpbusd(5, 6, 7);
    }
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
