// tools/bench/tiles.h - matrix products on AMX tile registers alone: what the unit does when it never waits for memory.
#pragma once
#include <cstdint>

namespace tenon::bench {

// Whether this process may use tiles; asks the kernel for them.
bool have_tiles();

// At least `pieces` products of a 16 x 64-byte by a 64-byte x 16 tile, in registers, the tiles loaded once. On one thread.
void spin_tiles(int64_t pieces, bool bf16);

}  // namespace tenon::bench
