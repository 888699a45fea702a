// ops/norm/batch_norm_shapes.h - how statistics of channels [C] meet x [N, C, ...].
#pragma once
#include "ops/norm/norm_tools.h"

namespace tenon::ops {

inline Dims channel_dims(const tn_type& x) {  // [1, C, 1, ...]
  Dims dims(x.rank, 1);
  dims[1] = x.dim[1];
  return dims;
}
inline Dims all_but_channels(const tn_type& x) {
  Dims axes{0};
  for (int64_t i = 2; i < x.rank; ++i) axes.push_back(i);
  return axes;
}
// A [C] operand as [1, C, 1, ...]; absent stays absent.
inline Value per_channel(Emit& e, Value v, const tn_type& x) { return v ? reshape(e, v, channel_dims(x)) : v; }

// x, scale and bias of a batch-norm op.
inline tn_status check_batch_norm(tn_diag* d, const char* name, const tn_op* op, const Calc& calc) {
  const tn_type& x = op->type[0];
  if (tn_status s = need_float(d, name, "x", x); s != TN_OK) return s;
  if (tn_status s = need_rank(d, name, "x", x, 2, TN_MAX_RANK); s != TN_OK) return s;
  return check_affine(d, name, op, {x.dim[1]}, calc);
}

// A statistic [C] in the compute type (or x's own type, where `narrow`).
inline tn_status check_statistic(tn_diag* d, const char* name, const char* operand, const tn_type& t, const tn_type& x, bool narrow,
                                 const Calc& calc) {
  tn_type wide = x;
  wide.dtype = static_cast<uint8_t>(compute_type(x.dtype));
  if (!(narrow && t.dtype == x.dtype))
    if (tn_status s = need_same_dtype(d, name, operand, t, wide); s != TN_OK) return s;
  return need_dims(d, name, operand, t, {x.dim[1]}, calc);
}

// Shapes [N, C, ...] that cases are made of.
inline std::vector<Dims> batch_norm_dims() {
  return {{2, 1}, {3, 4}, {8, 3}, {0, 3}, {2, 3, 5}, {4, 2, 1}, {2, 3, 4, 5}, {3, 1, 2, 2}, {2, 65, 1, 1}, {5, 2, 3, 1}, {2, 3, 2, 2, 2}, {1, 4, 7, 7}};
}

}  // namespace tenon::ops
