// backends/cpu/conv/tiles.h - the one loop that all direct convolutions are made of.
#pragma once
#include "backends/cpu/core.h"

namespace tenon::cpu {

// A tile of rows x (vectors * lanes) sums:
//   c[r][o] (+)= start[o] + sum over i < outer, j < inner of a[row r + i * a_outer + j * a_inner] * b[o + i * b_outer + j * b_inner]
// where row r starts at (r / kRowGroup) * a_group + (r % kRowGroup) * a_row (tile `five`: 5 for kRowGroup). b and start are read in whole vectors.
struct ConvTile {
  int64_t outer, inner, a_outer, a_inner, a_group, a_row, b_outer, b_inner, c_row;
  int64_t count;       // elements of a row of c that are written
  const float* start;  // NULL = 0
  bool add;            // c += instead of c =
};
using ConvTileFn = void (*)(const ConvTile&, const float* a, const float* b, float* c);

constexpr int64_t kRowGroup = 3;
constexpr int64_t kMostRows = 14, kMostVectors = 2;
struct ConvCode {
  int64_t lanes, rows[kMostVectors + 1];           // most rows for 1 and 2 vectors
  ConvTileFn tile[kMostVectors + 1][kMostRows + 1];
  ConvTileFn five;  // 25 rows of one vector, NULL where registers do not hold them
};
const ConvCode& conv_code(Isa);

}  // namespace tenon::cpu
