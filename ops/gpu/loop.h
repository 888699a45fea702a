// ops/gpu/loop.h - an index space over strided operands: split so that a device can bind and count it, then walked in text.
//
//   for (const Box& box : split(caps, whole, operands)) {
//     StepBuilder step("my_kernel");
//     LoopText loop(&step, box);                         // adds the scalars n, d1, d2 ...
//     for (auto& o : operands) loop.operand(o);          // adds the buffer and its strides
//     step.spec.body = loop.open() + ... load_text(dtype, o.name, loop.at(k)) ... + loop.close();
#pragma once
#include "ops/gpu/text.h"

namespace tenon::gpu {

// An operand's strides (elements) are those of the space's axes; 0 where it is repeated.
struct LoopOperand {
  std::string name;
  uint32_t view = 0, dtype = 0;
  bool writable = false;
  int64_t stride[TN_MAX_RANK] = {};
};

// dim: of this piece. origin: its first index on each axis of the whole space.
struct Box { uint32_t rank = 0; int64_t dim[TN_MAX_RANK] = {}, origin[TN_MAX_RANK] = {}; };

// Strides of `type` in a space of `rank` axes: aligned at the right, axes of size 1 repeated.
LoopOperand loop_operand(std::string name, uint32_t view, const tn_type& type, uint32_t rank, bool writable);
int64_t box_size(const Box&);
// Drops axes of size 1 and joins neighbours where all operands allow it; only for spaces without origins and INDEX by axis.
void simplify(Box*, std::vector<LoopOperand>*);
// Pieces of fewer than 2^31 indices each, in which every operand reaches at most caps.binding_bytes (and 2^31 elements
// where the device has no 64-bit indices). Together they cover the box, in row-major order of their origins.
std::vector<Box> split(const Caps&, const Box&, const std::vector<LoopOperand>&);

// What an operand touches in a box; `zero`: elements from the reach's first byte to the operand's element at the box's origin.
struct Touched { Reach reach; uint64_t zero = 0, elements = 0; };
Touched touched(const LoopOperand&, const Box&);

// Text of the loop: each thread takes every (number of threads)-th index.
class LoopText {
 public:
  LoopText(StepBuilder* step, const Box& box);
  uint32_t operand(const LoopOperand&);   // returns its number
  std::string open();                     // declares i (tn_uint), c0.. (tn_uint: index on each axis within the box) and each at()
  std::string at(uint32_t operand) const; // element index into the operand's buffer
  static std::string close() { return "  }\n"; }
  // Index in the whole space, as a register value of integer type; axis or TN_INDEX_FLAT (row-major over `dims`). Call before finish().
  std::string index(uint32_t axis, uint32_t dtype, const int64_t* dims);
  // Sets group and groups: one thread an index, fewer where the device has its fill.
  void launch(const Caps&);

 private:
  struct Walk { LoopOperand operand; bool wide, zero; };
  std::string scalar(const std::string& name, int64_t value, bool wide);
  StepBuilder* step_;
  Box box_;
  std::vector<Walk> walks_;
  bool needs_axes_ = false;
};

}  // namespace tenon::gpu
