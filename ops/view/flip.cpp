// ops/view/flip.cpp - axes read backward.
#include <algorithm>

#include "ops/view/view.h"

namespace tenon::ops {
namespace {

tn_status infer(void*, const tn_op* op, const tn_dims* d, tn_type* out, tn_diag* diag) {
  tn_type t = op->type[0];
  uint32_t seen = 0;
  for (int64_t axis : attr_ints(*op, TN_KEY_AXES)) {
    if (axis < 0 || axis >= t.rank || (seen >> axis & 1) != 0)
      return fail(diag, TN_E_SHAPE, error_id(kShape, 5), "flip: axis out of range, or named twice\nwhy: axis %lld, the operand is %s\n"
                  "try: name axes from 0 to rank - 1, each once", static_cast<long long>(axis), type_text(t).c_str());
    seen |= 1u << axis;
    t.stride[axis] = calc(d, TN_DIM_SUB, 0, t.stride[axis]);
  }
  t.space = t.align_log2 = 0;
  *out = t;
  return TN_OK;
}

tn_status view(void*, const tn_op* op, const tn_dims* d, int64_t* out_offset, tn_diag*) {
  const tn_type& x = op->type[0];
  *out_offset = 0;
  if (std::find(x.dim, x.dim + x.rank, 0) != x.dim + x.rank) return TN_OK;
  for (int64_t axis : attr_ints(*op, TN_KEY_AXES))
    *out_offset = calc(d, TN_DIM_ADD, *out_offset, calc(d, TN_DIM_MUL, calc(d, TN_DIM_SUB, x.dim[axis], 1), x.stride[axis]));
  return TN_OK;
}

tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  if (e.seed(0)) e.result(0, e.same_attrs(TN_OPID_FLIP, {e.seed(0)}));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto over = [&](std::vector<int64_t> dims, std::vector<int64_t> axes) {
    add_view_cases(&list, std::move(dims), {case_ints(TN_KEY_AXES, std::move(axes))});
  };
  over({}, {});
  over({7}, {0});
  over({3, 5}, {});
  over({3, 5}, {1});
  over({2, 3, 4}, {0, 2});
  over({0, 3}, {0, 1});
  over({2, 1, 3, 2, 5}, {4, 0});
  return list;
}

constexpr tn_attr_def kAttrs[] = {attr_def(TN_KEY_AXES, TN_ATTR_I64S, "axes", TN_ATTR_REQUIRED)};

constexpr tn_op_def def() {
  tn_op_def d = view_def(TN_OPID_FLIP, "flip", kAttrs, 1);
  d.infer = infer, d.view = view, d.vjp = vjp;
  return d;
}

}  // namespace

extern const OpDecl op_flip{
    .def = def(),
    .summary = "Axes read backward.",
    .formula = "y[i] = x[n - 1 - i] along each of the axes",
    .semantics = "A view with negative strides.",
    .example = "flip f32[2,3] --axes 1",
    .cases = cases,
    .dtypes = kAllTypes};

}  // namespace tenon::ops
