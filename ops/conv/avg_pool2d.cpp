// The mean of each window.
#include "ops/conv/average.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {TENON_SLIDING_ATTRS, def_required(TN_KEY_KERNEL, TN_ATTR_I64S, "kernel"),
                                  def_i64(TN_KEY_INCLUDE_PAD, "include_pad", 0)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const tn_type& x = op->type[0];
  Sliding s;
  Dims places;
  if (tn_status st = need_float(d, "avg_pool2d", "x", x); st != TN_OK) return st;
  if (tn_status st = need_rank(d, "avg_pool2d", "x", x, 4, 4); st != TN_OK) return st;
  if (tn_status st = read_sliding(d, "avg_pool2d", op, true, &s); st != TN_OK) return st;
  if (tn_status st = window_places(d, "avg_pool2d", s, x.dim[2], x.dim[3], Calc{dims}, &places); st != TN_OK) return st;
  set_image(out, x.dtype, {x.dim[0], x.dim[1], places[0], places[1]}, x, dims);
  return TN_OK;
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type &x = e.self().type[0], &y = e.self().type[1];
  const Calc calc = calc_of(b);
  const Sliding s = sliding_of(e.self(), true);
  const Value padded = pad_image(e, widen(e, e.in(0)), s.lo, s.hi, {0, 0}, 0, calc);
  const Value sum = reduce_windows(e, TN_OPID_SUM, windows(e, padded, s), y, calc);
  e.result(0, divide_by_count(e, sum, s, x.dim[2], x.dim[3], attr_i64(e.self(), TN_KEY_INCLUDE_PAD, 0) != 0, x.dtype));
  return e.status();
}

tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  if (!e.seed(0)) return e.status();
  std::vector<Attr> attrs = sliding_attrs(sliding_of(e.self(), true), true, dims_of(e.self().type[0]));
  attrs.push_back(Attr::i64(TN_KEY_INCLUDE_PAD, attr_i64(e.self(), TN_KEY_INCLUDE_PAD, 0)));
  const Value in[] = {e.seed(0)};
  e.result(0, e.ops(TN_OPID_AVG_POOL2D_GRAD, in, attrs, {}, 1)[0]);
  return e.status();
}

tn_status cost(void*, const tn_op* op, tn_cost* out, tn_diag*) {
  const Dims kernel = attr_ints(*op, TN_KEY_KERNEL);
  return set_cost(out, TN_BOUND_MEMORY, elements(op->type[1]) * static_cast<double>(product(kernel)), operand_bytes(op));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const WindowCase& c : pooling_cases())
    for (int64_t include : {0, 1}) {
      if (include == 1 && c.s.lo == Dims{0, 0} && c.s.hi == Dims{0, 0}) continue;
      Case made{{operand(c.x)}, sliding_case_attrs(c.s, true)};
      made.attrs.push_back(case_i64(TN_KEY_INCLUDE_PAD, include));
      all.push_back(made);
    }
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast})
    all.push_back({{operand({2, 3, 6, 5}, Fill::Normal, layout)}, {case_ints(TN_KEY_STRIDES, {2, 2}), case_ints(TN_KEY_KERNEL, {2, 2})}});
  return all;
}

}  // namespace

extern const OpDecl op_avg_pool2d{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_WIDE, .op_id = TN_OPID_AVG_POOL2D, .version = 1, .n_in = 1, .n_out = 1,
            .n_attr_defs = std::size(kAttrs), .name = "avg_pool2d", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp, .cost = cost},
    .summary = "The mean of each window.",
    .formula = "y[n, c, i, j] = sum over k, l of x[n, c, i*s - lo + k*dil, j*s - lo + l*dil] / count",
    .semantics = "Padding adds 0. count is the number of taps inside x, or all taps with include_pad = 1. A window of padding alone gives 0. Narrow types "
                 "sum in f32.",
    .example = "f32[1,3,8,8] kernel=2,2 strides=2,2",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 8};

}  // namespace tenon::ops
