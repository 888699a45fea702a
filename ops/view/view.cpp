// ops/view/view.cpp - see view.h.
#include "ops/view/view.h"

namespace tenon::ops {

tn_status check_dims(const char* op_name, const std::vector<int64_t>& dims, tn_diag* diag) {
  if (dims.size() > TN_MAX_RANK)
    return fail(diag, TN_E_SHAPE, error_id(kShape, 7), "%s: too many axes\nwhy: %zu are asked for, the most is %d\n"
                "try: merge axes", op_name, dims.size(), TN_MAX_RANK);
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] < 0 && !TN_IS_SYM(dims[i]))
      return fail(diag, TN_E_SHAPE, error_id(kShape, 8), "%s: a size is negative\nwhy: dims[%zu] is %lld\n"
                  "try: give sizes of 0 or more", op_name, i, static_cast<long long>(dims[i]));
  return TN_OK;
}

tn_status view_cost(void*, const tn_op*, tn_cost* out, tn_diag*) {
  out->bound = TN_BOUND_VIEW;
  out->flops = out->bytes = 0;
  return TN_OK;
}

tn_status view_at_start(void*, const tn_op*, const tn_dims*, int64_t* out_offset, tn_diag*) {
  *out_offset = 0;
  return TN_OK;
}

void add_view_cases(std::vector<Case>* list, std::vector<int64_t> dims, std::vector<CaseAttr> attrs) {
  for (const Layout layout : {Layout::Dense, Layout::Permuted, Layout::Gapped, Layout::Broadcast}) {
    if (dims.empty() && layout != Layout::Dense) continue;
    Case c;
    c.in.resize(1);
    c.in[0].dims = dims;
    c.in[0].layout = layout;
    c.attrs = attrs;
    list->push_back(c);
  }
}

Value pad_axis(Emit& e, Value seed, uint32_t axis, int64_t lo, int64_t step, int64_t size) {
  const tn_type t = e.type(seed);
  if (!e.ok()) return seed;
  const tn_dims* d = e.arithmetic();
  const int64_t n = t.dim[axis];
  // The span from the first to the last element, both included; nothing of nothing.
  const int64_t span = n == 0 ? 0 : calc(d, TN_DIM_ADD, calc(d, TN_DIM_MUL, calc(d, TN_DIM_SUB, n, 1), step), 1);
  const int64_t hi = calc(d, TN_DIM_SUB, calc(d, TN_DIM_SUB, size, span), lo);
  if (lo == 0 && hi == 0 && (step == 1 || n <= 1)) return seed;
  std::vector<int64_t> los(t.rank), his(t.rank), interior(t.rank);
  los[axis] = lo, his[axis] = hi, interior[axis] = step - 1;
  return e.op(TN_OPID_PAD, {seed}, {Attr::ints(TN_KEY_LO, los), Attr::ints(TN_KEY_HI, his), Attr::ints(TN_KEY_INTERIOR, interior)},
              {literal(0, t.dtype)});
}

}  // namespace tenon::ops
