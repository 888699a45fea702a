// backends/cpu/pointwise/block_ops.h - loops over one block of elements: one function per opcode, element type and
// instruction set.
//
//   BlockFn add = find_float_op(isa, TN_OP_ADD, TN_F32);  add(dst, a, b, nullptr, nullptr, 512);
//
// n is a multiple of kGranule, and every operand holds n elements; dst may be one of the operands. Functions are pure
// and keep nothing. nullptr = no such function.
#pragma once
#include "backends/cpu/core.h"

namespace tenon::cpu {

constexpr int64_t kGranule = 16;  // elements; a whole number of vectors for every type but bytes, which have scalar tails

using BlockFn = void (*)(void* dst, const void* a, const void* b, const void* c, const void* d, int64_t n);

BlockFn find_float_op(Isa, uint32_t opcode, uint32_t dtype);  // f32, f64 -> the same type
// Two f32 instructions without a trip through memory: (a first b) second c, or c second (a first b) when `swapped`.
BlockFn find_pair(Isa, uint32_t first, uint32_t second, bool swapped);
// f32: (a compare b) ? c : d.
BlockFn find_compare_select(Isa, uint32_t compare);
// Comparisons of any type to bool, SELECT by element size, and all opcodes of integers and bool.
BlockFn find_plain_op(Isa, uint32_t opcode, uint32_t dtype);
BlockFn find_cast(Isa, uint32_t from, uint32_t to);
BlockFn find_philox(Isa, uint32_t word);

// Copies past the caches (dst 64-byte aligned, bytes a multiple of 64); call stream_fence() after the last.
void stream_copy(Isa, void* dst, const void* src, int64_t bytes);
void stream_fence();

}  // namespace tenon::cpu
