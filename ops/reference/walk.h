// ops/reference/walk.h - walking strided operands in one common order.
//
// A Loop is an index space shared by several operands, with axes of size 1 dropped and neighbours merged where every
// operand allows it. A block is `n` consecutive indices from `first`; loads give it densely, without a copy if it already
// lies densely in memory. Elements are addressed from element [0,...,0] of an operand; strides may be 0 or negative.
// Threads: a Loop is immutable once built. Allocates nothing.
#pragma once
#include "ops/reference/dtype.h"

#include <cstring>

namespace tenon::reference {

inline constexpr int kMaxOperands = 20;   // 16 inputs and 4 outputs
inline constexpr int64_t kBlock = 256;    // elements an instruction handles at a time

struct Loop {
  int rank = 1, n_operands = 0;
  int64_t size = 1;                                // elements of the index space
  int64_t dim[TN_MAX_RANK] = {1};                  // outermost first; at least one axis
  int64_t stride[kMaxOperands][TN_MAX_RANK] = {};  // elements
};

enum class Order { RowMajor /* as given */, AsFirst /* axes sorted so that operand 0 is walked forward in memory */,
                   Exact /* as given, nothing dropped or merged */ };
// Builds a loop over dim[0..rank) for n operands with their strides.
Loop make_loop(int rank, const int64_t* dim, int n, const int64_t (*stride)[TN_MAX_RANK], Order order);

// Strides of `type` seen in a space of `rank` dims: aligned at the right, axes of size 1 repeated (stride 0).
void broadcast_strides(const tn_type& type, int rank, int64_t* out);
int64_t element_count(const tn_type& type);

// Calls f(offset, run) for consecutive pieces of the block, each along the innermost axis; offset in elements.
template <class F>
void for_runs(const Loop& loop, const int64_t* stride, int64_t first, int64_t n, F f) {
  int64_t at[TN_MAX_RANK];
  const int last = loop.rank - 1;
  int64_t offset = 0;
  for (int d = last; d > 0; --d) {
    at[d] = first % loop.dim[d];
    first /= loop.dim[d];
    offset += at[d] * stride[d];
  }
  at[0] = first;
  offset += first * stride[0];
  while (n > 0) {
    const int64_t left = loop.dim[last] - at[last], run = n < left ? n : left;
    f(offset, run);
    n -= run;
    at[last] += run;
    offset += run * stride[last];
    for (int d = last; d > 0 && at[d] == loop.dim[d]; --d) {
      offset += stride[d - 1] - at[d] * stride[d];
      at[d] = 0;
      ++at[d - 1];
    }
  }
}

// One operand of a loop at a base address.
struct Operand {
  char* base = nullptr;
  const int64_t* stride = nullptr;
  uint32_t bytes = 0;  // of an element
};
// The block as a dense array: a pointer into the operand where possible, else into scratch (kBlock * 16 bytes).
const void* load_block(const Loop&, const Operand&, int64_t first, int64_t n, void* scratch);
// Where to write the block densely, or NULL when it must go through store_block.
void* dense_block(const Loop&, const Operand&, int64_t first, int64_t n);
void store_block(const Loop&, const Operand&, int64_t first, int64_t n, const void* values);
bool is_constant(const Loop&, const int64_t* stride);  // every index reads the same element

}  // namespace tenon::reference
