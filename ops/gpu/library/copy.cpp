// ops/gpu/library/copy.cpp - moves elements of any whole-byte type as bits, strided to strided.
#include "ops/gpu/loop.h"
#include "ops/gpu/rows.h"

namespace tenon::gpu {
namespace {

// Types of one size are one kernel: the unsigned integer of that size. A 16-byte element is two of 8 bytes.
uint32_t bits_type(uint32_t dtype) {
  switch (element_bytes(dtype)) {
    case 1: return TN_U8;
    case 2: return TN_U16;
    case 4: return TN_U32;
    default: return TN_U64;
  }
}

std::vector<tn_constraint> constraints(const Caps& caps) {
  uint64_t types = 0;
  for (uint32_t d = 1; d < 64; ++d)
    if (element_bytes(d) != 0 && (caps.storage >> bits_type(d) & 1) != 0) types |= uint64_t{1} << d;
  return {{TN_ANY_OPERAND, TN_NEED_LAYOUT, 0, uint64_t{1} << TN_LAYOUT_STRIDED, 0, 0}, {TN_ANY_OPERAND, TN_NEED_DTYPE, 0, types, 0, 0}};
}

Step build_piece(const Caps& caps, const Box& box, const std::vector<LoopOperand>& operands) {
  StepBuilder step("copy");
  LoopText loop(&step, box);
  for (const LoopOperand& o : operands) loop.operand(o);
  step.spec.body = loop.open() + "    y[" + loop.at(1) + "] = x[" + loop.at(0) + "];\n" + LoopText::close();
  loop.launch(caps);
  return step.finish();
}

tn_status build(const Caps& caps, const tn_op& op, Recipe* r, tn_diag*) {
  const tn_type& out = op.type[1];
  Box box;
  box.rank = out.rank;
  for (uint32_t d = 0; d < out.rank; ++d) box.dim[d] = out.dim[d];
  std::vector<LoopOperand> operands = {loop_operand("x", 0, op.type[0], out.rank, false), loop_operand("y", 1, out, out.rank, true)};
  const uint32_t words = element_bytes(out.dtype) == 16 ? 2 : 1;
  for (LoopOperand& o : operands) {
    o.dtype = bits_type(o.dtype);
    if (words == 2) {
      for (uint32_t d = 0; d < box.rank; ++d) o.stride[d] *= 2;
      o.stride[box.rank] = 1;
    }
  }
  if (words == 2) box.dim[box.rank++] = 2;
  simplify(&box, &operands);
  for (const Box& piece : split(caps, box, operands)) r->steps.push_back(build_piece(caps, piece, operands));
  r->bytes = 2.0 * static_cast<double>(box_size(box)) * element_bytes(operands[0].dtype);
  return TN_OK;
}

// Only a 16-byte type whose eight axes cannot be joined has no room for its pair of words.
tn_status supports(const Caps&, const tn_op& op, tn_support*, tn_diag* diag) {
  if (element_bytes(op.type[1].dtype) == 16 && op.type[1].rank == TN_MAX_RANK)
    return refuse(diag, TN_E_UNSUPPORTED, "copy: 16-byte elements with eight axes\nwhy: rank %u, at most 7 for c128\ntry: reshape to fewer axes", op.type[1].rank);
  return TN_OK;
}

constexpr RowCode kRows[] = {{{"copy", TN_OPID_COPY, TN_TIER_NATIVE}, constraints, supports, build}};

}  // namespace

std::span<const RowCode> copy_rows() { return kRows; }

}  // namespace tenon::gpu
