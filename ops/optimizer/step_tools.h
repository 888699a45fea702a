// ops/optimizer/step_tools.h - what the optimizer steps share: one type, one shape, one pass.
#pragma once
#include "ops/movement/rule_tools.h"

namespace tenon::ops {

// All present operands have the parameter's element type and dims; each output is like the parameter.
inline tn_status infer_step(const char* name, const char* const* operands, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const tn_type& p = op->type[0];
  if (tn_status s = need_float(d, name, operands[0], p); s != TN_OK) return s;
  for (uint32_t i = 1; i < op->n_in; ++i) {
    if (op->type[i].dtype == 0) continue;
    if (tn_status s = need_same_dtype(d, name, operands[i], op->type[i], p); s != TN_OK) return s;
    if (tn_status s = need_dims(d, name, operands[i], op->type[i], dims_of(p), Calc{dims}); s != TN_OK) return s;
  }
  for (uint32_t i = 0; i < op->n_out; ++i) {
    out[i] = tn_type{};
    if (tn_status s = broadcast(op, dims, &out[i], d); s != TN_OK) return s;
    out[i].dtype = p.dtype;
  }
  return TN_OK;
}

inline std::vector<Dims> step_dims() { return {{}, {0}, {1}, {7}, {64}, {65}, {70}, {3, 5}, {2, 0, 3}, {4, 3, 2, 2}}; }

}  // namespace tenon::ops
