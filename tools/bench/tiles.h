// tools/bench/tiles.h - the inner step of a matrix product on AMX tiles, its operands always in L1: what no kernel can pass.
#pragma once
#include <cstdint>

namespace tenon::bench {

// Whether this process may use tiles; asks the kernel for them.
bool have_tiles();

// At least `pieces` products of a 16 x 64-byte by a 64-byte x 16 tile, each with the load that it needs. On one thread.
void spin_tiles(int64_t pieces, bool bf16);

}  // namespace tenon::bench
