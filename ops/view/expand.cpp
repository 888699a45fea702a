// ops/view/expand.cpp - axes of size 1, and new leading axes, repeated without copying.
#include <algorithm>

#include "ops/pull.h"
#include "ops/view/view.h"

namespace tenon::ops {
namespace {

tn_status infer(void*, const tn_op* op, const tn_dims* d, tn_type* out, tn_diag* diag) {
  const tn_type& x = op->type[0];
  const std::vector<int64_t> want = attr_ints(*op, TN_KEY_DIMS);
  const tn_status s = check_dims("expand", want, diag);
  if (s != TN_OK) return s;
  tn_type t{};
  t.dtype = x.dtype;
  t.rank = static_cast<uint8_t>(want.size());
  std::copy(want.begin(), want.end(), t.dim);
  const size_t shift = want.size() - std::min<size_t>(want.size(), x.rank);
  bool fits = want.size() >= x.rank;
  for (size_t i = 0; fits && i < x.rank; ++i) {
    const bool same = x.dim[i] == want[shift + i];
    // A symbol is 2 or more, so that only two sizes of which one is a symbol are left open.
    const bool open = TN_IS_SYM(x.dim[i]) || (TN_IS_SYM(want[shift + i]) && x.dim[i] > 1);
    if (x.dim[i] != 1 && !same) fits = open && d->require(d->ctx, TN_DIM_EQ, x.dim[i], want[shift + i], diag) == TN_OK;
    t.stride[shift + i] = x.dim[i] == 1 && !same ? 0 : x.stride[i];
  }
  if (!fits)
    return fail(diag, TN_E_SHAPE, error_id(kShape, 15), "expand: the dims do not broadcast\nwhy: the operand is %s, asked for is %s\n"
                "try: keep every axis that is not 1", type_text(x).c_str(), type_text(t).c_str());
  *out = t;
  return TN_OK;
}

tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  if (!e.seed(0)) return e.status();
  const tn_type &x = e.self().type[0], &y = e.self().type[1];
  std::vector<int64_t> axes;
  const uint32_t shift = y.rank - x.rank;
  for (uint32_t i = 0; i < y.rank; ++i)
    if (y.dim[i] != 1 && (i < shift || x.dim[i - shift] == 1)) axes.push_back(i);
  Value g = e.seed(0);
  if (!axes.empty())
    g = e.op(TN_OPID_REDUCE, {g}, {Attr::ints(TN_KEY_AXES, axes), Attr::i64(TN_KEY_KEEPDIMS, 1), Attr::i64(TN_KEY_MONOID, TN_MONOID_SUM)});
  e.result(0, with_dims(e, g, {x.dim, x.dim + x.rank}));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto to = [&](std::vector<int64_t> from, std::vector<int64_t> dims) {
    add_view_cases(&list, std::move(from), {case_ints(TN_KEY_DIMS, std::move(dims))});
  };
  to({}, {2, 3});
  to({1}, {7});
  to({3}, {2, 3});
  to({2, 1}, {2, 5});
  to({1}, {0});
  to({0, 1}, {0, 4});
  to({1, 3, 1}, {2, 4, 3, 5});
  to({3, 5}, {3, 5});
  return list;
}

constexpr tn_attr_def kAttrs[] = {attr_def(TN_KEY_DIMS, TN_ATTR_I64S, "dims", TN_ATTR_REQUIRED)};

constexpr tn_op_def def() {
  tn_op_def d = view_def(TN_OPID_EXPAND, "expand", kAttrs, 1);
  d.infer = infer, d.vjp = vjp;
  return d;
}

}  // namespace

extern const OpDecl op_expand{
    .def = def(),
    .summary = "Axes of size 1, and new leading axes, repeated without copying.",
    .formula = "y[i] = x[i, 0 where x has size 1]",
    .semantics = "NumPy broadcast_to: repeated axes have stride 0. The gradient sums over them.",
    .example = "expand f32[3,1] --dims 2,3,4",
    .cases = cases,
    .dtypes = kAllTypes};

}  // namespace tenon::ops
