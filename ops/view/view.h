// ops/view/view.h - what the view ops share.
#pragma once
#include "ops/cases.h"
#include "ops/declare.h"
#include "ops/emit.h"

namespace tenon::ops {

// Dims as an attribute gives them: at most TN_MAX_RANK, none negative but symbols. TN-SHAPE-007, TN-SHAPE-008.
tn_status check_dims(const char* op_name, const std::vector<int64_t>& dims, tn_diag* diag);

tn_status view_cost(void*, const tn_op*, tn_cost* out, tn_diag*);
tn_status view_at_start(void*, const tn_op*, const tn_dims*, int64_t* out_offset, tn_diag*);  // offset 0

inline int64_t calc(const tn_dims* d, uint32_t dim_op, int64_t a, int64_t b) { return d->calc(d->ctx, dim_op, a, b); }

// One operand of `dims` in each layout, with the same attributes: views must not depend on how their input lies.
void add_view_cases(std::vector<Case>* list, std::vector<int64_t> dims, std::vector<CaseAttr> attrs);

// Seed padded back to where it came from along `axis`: element i goes to lo + i * step of `size`; zeros elsewhere.
Value pad_axis(Emit& e, Value seed, uint32_t axis, int64_t lo, int64_t step, int64_t size);

constexpr tn_op_def view_def(uint32_t op_id, const char* name, const tn_attr_def* attrs, uint16_t n_attrs) {
  tn_op_def d{};
  d.size = sizeof(tn_op_def);
  d.op_id = op_id;
  d.version = 1;
  d.n_in = d.n_out = 1;
  d.n_attr_defs = n_attrs;
  d.name = name;
  d.attr_defs = attrs;
  d.view = view_at_start;
  d.cost = view_cost;
  return d;
}

}  // namespace tenon::ops
