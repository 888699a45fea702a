// ops/view/permute.cpp - axes in another order.
#include "ops/view/view.h"

namespace tenon::ops {
namespace {

std::string list_text(const std::vector<int64_t>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += (i ? "," : "") + std::to_string(values[i]);
  return text + "]";
}

tn_status infer(void*, const tn_op* op, const tn_dims*, tn_type* out, tn_diag* diag) {
  const tn_type& x = op->type[0];
  const std::vector<int64_t> perm = attr_ints(*op, TN_KEY_PERM);
  uint32_t seen = 0;
  for (int64_t axis : perm) seen |= axis >= 0 && axis < x.rank ? 1u << axis : 0;
  if (perm.size() != x.rank || seen != (1u << x.rank) - 1)
    return fail(diag, TN_E_SHAPE, error_id(kShape, 14), "permute: perm is no order of the axes\nwhy: the operand is %s, perm is %s\n"
                "try: name each axis from 0 to %d once", type_text(x).c_str(), list_text(perm).c_str(), x.rank - 1);
  tn_type t{};
  t.dtype = x.dtype;
  t.rank = x.rank;
  for (uint32_t i = 0; i < x.rank; ++i) t.dim[i] = x.dim[perm[i]], t.stride[i] = x.stride[perm[i]];
  *out = t;
  return TN_OK;
}

tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const std::vector<int64_t> perm = attr_ints(e.self(), TN_KEY_PERM);
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  if (e.seed(0)) e.result(0, e.op(TN_OPID_PERMUTE, {e.seed(0)}, {Attr::ints(TN_KEY_PERM, inverse)}));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto by = [&](std::vector<int64_t> dims, std::vector<int64_t> perm) {
    add_view_cases(&list, std::move(dims), {case_ints(TN_KEY_PERM, std::move(perm))});
  };
  by({}, {});
  by({7}, {0});
  by({3, 5}, {1, 0});
  by({2, 3, 4}, {2, 0, 1});
  by({0, 3}, {1, 0});
  by({2, 1, 3, 2, 5}, {4, 2, 0, 1, 3});
  return list;
}

constexpr tn_attr_def kAttrs[] = {attr_def(TN_KEY_PERM, TN_ATTR_I64S, "perm", TN_ATTR_REQUIRED)};

constexpr tn_op_def def() {
  tn_op_def d = view_def(TN_OPID_PERMUTE, "permute", kAttrs, 1);
  d.infer = infer, d.vjp = vjp;
  return d;
}

}  // namespace

extern const OpDecl op_permute{
    .def = def(),
    .summary = "Axes in another order.",
    .formula = "y[i_perm[0], i_perm[1], ...] = x[i_0, i_1, ...]",
    .semantics = "A view: no element moves. Axis k of the result is axis perm[k] of the operand.",
    .example = "permute f32[2,3] --perm 1,0",
    .cases = cases,
    .dtypes = kAllTypes};

}  // namespace tenon::ops
