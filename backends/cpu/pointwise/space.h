// backends/cpu/pointwise/space.h - the index space of one launch and how each operand lies in it.
//
// Axes of size 1 are dropped, the others ordered by the strides of a leading operand and merged where every operand
// allows it; what is left is walked in row-major order as one flat range.
#pragma once
#include "backends/cpu/core.h"

namespace tenon::cpu {

constexpr int kMaxOperands = TN_PROGRAM_MAX_IN + TN_PROGRAM_MAX_OUT;

enum class Walk : uint8_t { Flat /* contiguous over the whole range */, Uniform /* one element */, Strided };

struct Operand {
  int64_t stride[TN_MAX_RANK];
  int32_t size;  // bytes of an element
  Walk walk;
};
struct Space {
  int rank = 0, n_operands = 0;
  int64_t n = 0;
  int64_t dim[TN_MAX_RANK];
  Operand operand[kMaxOperands];

  // `shape`: gives the dims (a resolved type); operands are broadcast to it from the right. `lead`: operand whose
  // order of axes is taken, -1 = keep every axis in its place (needed when the program asks for indices).
  void build(const tn_type& shape, const tn_type* types, int n, int lead);
  int64_t row() const { return rank == 0 ? 1 : dim[rank - 1]; }
  // Byte offset of the element at flat position `pos`.
  int64_t offset(int operand, int64_t pos) const;
};

// Copies `n` elements from flat position `pos` on between an operand in its strides and a dense buffer.
void gather_block(const Space&, int operand, const char* base, int64_t pos, int64_t n, char* dense);
void scatter_block(const Space&, int operand, char* base, int64_t pos, int64_t n, const char* dense);

}  // namespace tenon::cpu
