// ops/view/reshape.cpp - the same elements in row-major order under other dims.
#include <algorithm>
#include <optional>

#include "ops/view/view.h"

namespace tenon::ops {
namespace {

int64_t product(const tn_dims* d, const int64_t* dim, size_t n) {
  int64_t p = 1;
  for (size_t i = 0; i < n; ++i) p = calc(d, TN_DIM_MUL, p, dim[i]);
  return p;
}

bool is_empty(const tn_type& t) { return std::find(t.dim, t.dim + t.rank, 0) != t.dim + t.rank; }

tn_status count_differs(const tn_type& x, const std::vector<int64_t>& want, tn_diag* diag) {
  tn_type t = x;
  t.rank = static_cast<uint8_t>(want.size());
  std::copy(want.begin(), want.end(), t.dim);
  return fail(diag, TN_E_SHAPE, error_id(kShape, 11), "reshape: element counts differ\nwhy: the operand is %s, asked for is %s\n"
              "try: keep the product of the dims, or give one as -1", type_text(x).c_str(), type_text(t).c_str());
}

// Replaces one -1 by what is left.
tn_status resolve(const tn_op* op, const tn_dims* d, std::vector<int64_t>* want, tn_diag* diag) {
  const tn_type& x = op->type[0];
  const int64_t total = product(d, x.dim, x.rank);
  const auto open = std::find(want->begin(), want->end(), -1);
  if (open != want->end()) {
    const std::vector<int64_t> as_given = *want;
    *open = 1;
    if (std::find(want->begin(), want->end(), -1) != want->end())
      return fail(diag, TN_E_SHAPE, error_id(kShape, 12), "reshape: more than one size is left open\nwhy: -1 occurs twice\n"
                  "try: give all sizes but one");
    const int64_t known = product(d, want->data(), want->size());
    if (known == 0 || d->require(d->ctx, TN_DIM_DIVIDES, known, total, diag) != TN_OK) return count_differs(x, as_given, diag);
    *open = calc(d, TN_DIM_FLOORDIV, total, known);
  }
  const tn_status s = check_dims("reshape", *want, diag);
  if (s != TN_OK) return s;
  const int64_t count = product(d, want->data(), want->size());
  return d->require(d->ctx, TN_DIM_EQ, total, count, diag) == TN_OK ? TN_OK : count_differs(x, *want, diag);
}

// Strides of `out` over the memory of `x`, or nullopt when none exist. Runs of axes of x that lie densely behind each
// other are cut anew; each run has to hold a whole number of the new axes.
std::optional<tn_type> strides_over(const tn_type& x, tn_type out, const tn_dims* d) {
  if (is_empty(x)) {
    set_dense(&out, d);
    return out;
  }
  int32_t next = out.rank - 1;
  for (int32_t i = x.rank - 1; i >= 0;) {
    const int64_t inner = x.stride[i];
    int64_t run = x.dim[i--];
    if (run == 1) continue;
    while (i >= 0 && (x.dim[i] == 1 || x.stride[i] == calc(d, TN_DIM_MUL, run, inner))) run = calc(d, TN_DIM_MUL, run, x.dim[i--]);
    int64_t stride = inner, have = 1;
    while (have != run) {
      if (next < 0) return std::nullopt;
      out.stride[next] = stride;
      stride = calc(d, TN_DIM_MUL, stride, out.dim[next]);
      have = calc(d, TN_DIM_MUL, have, out.dim[next--]);
      if (!TN_IS_SYM(have) && !TN_IS_SYM(run) && have > run) return std::nullopt;
    }
  }
  // What is left has size 1.
  for (; next >= 0; --next) {
    if (out.dim[next] != 1) return std::nullopt;
    out.stride[next] = next + 1 < out.rank ? calc(d, TN_DIM_MUL, out.stride[next + 1], out.dim[next + 1]) : 1;
  }
  return out;
}

tn_status shape_of(const tn_op* op, const tn_dims* d, tn_type* out, tn_diag* diag) {
  std::vector<int64_t> want = attr_ints(*op, TN_KEY_DIMS);
  if (want.size() > TN_MAX_RANK) return check_dims("reshape", want, diag);
  const tn_status s = resolve(op, d, &want, diag);
  if (s != TN_OK) return s;
  *out = {};
  out->dtype = op->type[0].dtype;
  out->rank = static_cast<uint8_t>(want.size());
  std::copy(want.begin(), want.end(), out->dim);
  return TN_OK;
}

tn_status infer(void*, const tn_op* op, const tn_dims* d, tn_type* out, tn_diag* diag) {
  tn_type t{};
  const tn_status s = shape_of(op, d, &t, diag);
  if (s != TN_OK) return s;
  const auto view = strides_over(op->type[0], t, d);
  if (!view) set_dense(&t, d);
  *out = view ? *view : t;
  return TN_OK;
}

tn_status view(void*, const tn_op* op, const tn_dims* d, int64_t* out_offset, tn_diag* diag) {
  tn_type t{};
  const tn_status s = shape_of(op, d, &t, diag);
  if (s != TN_OK) return s;
  *out_offset = 0;
  if (strides_over(op->type[0], t, d)) return TN_OK;
  return TN_E_UNSUPPORTED;  // axes that are joined do not lie behind each other: the core copies, and nobody is told
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  e.result(0, e.same_attrs(TN_OPID_RESHAPE, {e.op(TN_OPID_COPY, {e.in(0)})}));
  return e.status();
}

tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& x = e.self().type[0];
  if (e.seed(0)) e.result(0, e.op(TN_OPID_RESHAPE, {e.seed(0)}, {Attr::ints(TN_KEY_DIMS, {x.dim, x.dim + x.rank})}));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto to = [&](std::vector<int64_t> from, std::vector<int64_t> dims) {
    add_view_cases(&list, std::move(from), {case_ints(TN_KEY_DIMS, std::move(dims))});
  };
  to({}, {1, 1});
  to({1}, {});
  to({6}, {2, 3});
  to({2, 3, 4}, {6, -1});
  to({2, 3, 4}, {2, 12});
  to({2, 3, 4}, {4, 3, 2});
  to({2, 1, 3, 2, 5}, {60});
  to({0, 3}, {3, 0, 2});
  to({7, 5}, {5, 7});
  return list;
}

constexpr tn_attr_def kAttrs[] = {attr_def(TN_KEY_DIMS, TN_ATTR_I64S, "dims", TN_ATTR_REQUIRED)};

constexpr tn_op_def def() {
  tn_op_def d = view_def(TN_OPID_RESHAPE, "reshape", kAttrs, 1);
  d.infer = infer, d.view = view, d.expand = expand, d.vjp = vjp;
  return d;
}

}  // namespace

extern const OpDecl op_reshape{
    .def = def(),
    .summary = "The same elements, in row-major order, under other dims.",
    .formula = "y[i] = x[j], i and j of the same row-major rank",
    .semantics = "One size may be -1. A view where the strides admit one, else a copy. An empty operand takes any empty shape, "
                 "but no -1 beside a 0.",
    .example = "reshape f32[2,3] --dims 3,2",
    .cases = cases,
    .dtypes = kAllTypes};

}  // namespace tenon::ops
