#include "ops/conv/average.h"

namespace tenon::ops {
namespace {

// Taps k of 0..kernel-1 with 0 <= o * stride - lo + k * dilation < size, for the place o of the output.
ProgramBuilder::Id taps_inside(ProgramBuilder& p, const Sliding& s, uint32_t i, int64_t size) {
  const auto number = [&](int64_t n) { return p.constant(static_cast<double>(n), TN_I64); };
  const auto start = p.op(TN_OP_SUB, p.op(TN_OP_MUL, p.index(2 + i, TN_I64), number(s.strides[i])), number(s.lo[i]));
  const auto zero = number(0), step = number(s.dilations[i]);
  // First tap: the ceiling of -start / dilation, not below 0. End: one past the last tap not beyond size - 1.
  const auto before = p.op(TN_OP_MAX, p.op(TN_OP_SUB, zero, start), zero);
  const auto first = p.op(TN_OP_DIV, p.op(TN_OP_ADD, before, number(s.dilations[i] - 1)), step);
  const auto room = p.op(TN_OP_MAX, p.op(TN_OP_ADD, p.op(TN_OP_SUB, number(size - 1), start), step), zero);
  const auto end = p.op(TN_OP_MIN, p.op(TN_OP_DIV, room, step), number(s.kernel[i]));
  return p.op(TN_OP_MAX, p.op(TN_OP_SUB, end, first), zero);
}

}  // namespace

Value divide_by_count(Emit& e, Value v, const Sliding& s, int64_t h, int64_t w, bool include_pad, uint32_t storage) {
  ProgramBuilder p(storage);
  const uint32_t wide = p.compute();
  const bool padded = s.lo != Dims{0, 0} || s.hi != Dims{0, 0};
  auto count = ProgramBuilder::Id{0};
  const auto value = p.input(0, wide);
  if (include_pad || !padded) {
    count = p.constant(static_cast<double>(product(s.kernel)));
  } else {
    const auto taps = p.op(TN_OP_MUL, taps_inside(p, s, 0, h), taps_inside(p, s, 1, w));
    count = p.cast(p.op(TN_OP_MAX, taps, p.constant(1, TN_I64)), wide);
  }
  p.output(p.op(TN_OP_DIV, value, count));
  const Value in[] = {v};
  return pointwise(e, p, in);
}

}  // namespace tenon::ops
