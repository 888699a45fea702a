// ops/gpu/library/matmul_text.h - bodies of the steps of a matrix product.
//
// A product's space has the axes batch..., m, n, k; operands are a, b, then what the results go to: either y (and z2, z3, ...,
// the post-program's further inputs) or "part", accumulators that matmul_finish_step adds up.
#pragma once
#include "ops/gpu/library/pieces.h"

namespace tenon::gpu {

struct MatmulShape {
  Space space;                 // access 0: a, 1: b, then y and z2.. or part
  int batches = 1;             // axes before m
  const tn_program* post = nullptr;
  uint8_t held = TN_F32;       // accumulator: F32, F64, U32 or U64
  uint8_t value = TN_F32;      // what its bits mean: F32, F64, I32, U32, I64, U64
  bool to_parts = false;
  uint32_t slices = 1;         // of the piece's depth, one part each
  int m_axis() const { return batches; }
  int n_axis() const { return batches + 1; }
  int k_axis() const { return batches + 2; }
};

// Tile of a work-group and of a thread.
struct Tile { uint32_t bm, bn, bk, tm, tn; uint32_t threads() const { return bm / tm * (bn / tn); } };

// One thread for one element.
tn_status matmul_direct_step(const Caps&, const MatmulShape&, const Piece&, Step* out, tn_diag*);
// Tiles of both operands in local memory, a block of results in each thread's registers.
Step matmul_tiled_step(const MatmulShape&, const Piece&, const Tile&);
uint64_t tile_local_bytes(const Tile&, uint8_t held);

// For processors: a block of 8 rows by two vectors in each thread, no local memory. b comes as rows of contiguous f32, or packed
// in panels (`b_packed`); a as f32. Needs m >= 8, and n >= panel width unless packed.
inline constexpr uint32_t kBlockRows = 8;
uint32_t block_columns(const Caps&);  // width of a panel
Step matmul_block_step(const Caps&, const MatmulShape&, const Piece&, bool b_packed);
// Copies an operand's piece into f32 panels: [batch][lines / width][depth][width], lines beyond the last are zeros. width 1
// gives rows. `target`: where in the workspace.
struct PackJob { const Access* from; Reach target; uint32_t width; int line_axis; bool batched; };
tn_status matmul_pack_step(const Caps&, const MatmulShape&, const Piece&, const PackJob&, Step* out, tn_diag*);

// Adds up `parts` accumulators for each element of the piece ([part][batch][m][n], dense), post-program, store.
tn_status matmul_finish_step(const Caps&, const MatmulShape& shape, const Piece&, Reach part, uint32_t parts, Step* out, tn_diag*);

}  // namespace tenon::gpu
