// The largest element of each window.
#include "ops/conv/image.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {TENON_SLIDING_ATTRS, def_required(TN_KEY_KERNEL, TN_ATTR_I64S, "kernel")};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const tn_type& x = op->type[0];
  Sliding s;
  Dims places;
  if (tn_status st = need_dtype(d, "max_pool2d", x.dtype, kNumbers); st != TN_OK) return st;
  if (tn_status st = need_rank(d, "max_pool2d", "x", x, 4, 4); st != TN_OK) return st;
  if (tn_status st = read_sliding(d, "max_pool2d", op, true, &s); st != TN_OK) return st;
  if (tn_status st = window_places(d, "max_pool2d", s, x.dim[2], x.dim[3], Calc{dims}, &places); st != TN_OK) return st;
  set_image(out, x.dtype, {x.dim[0], x.dim[1], places[0], places[1]}, x, dims);
  return TN_OK;
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type &x = e.self().type[0], &y = e.self().type[1];
  const Calc calc = calc_of(b);
  const Sliding s = sliding_of(e.self(), true);
  const Value padded = pad_image(e, e.in(0), s.lo, s.hi, {0, 0}, lowest_value(x.dtype), calc);
  e.result(0, reduce_windows(e, TN_OPID_MAX, windows(e, padded, s), y, calc));
  return e.status();
}

tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  if (!e.seed(0) || !is_float(e.self().type[0].dtype)) return e.status();
  // A gradient that comes through a flatten is row-major; kernels are fast where all three images have one order.
  const Value in[] = {e.in(0), e.out(0), as_image(e, e.seed(0), e.self().type[0], calc_of(b))};
  e.result(0, e.ops(TN_OPID_MAX_POOL2D_GRAD, in, sliding_attrs(sliding_of(e.self(), true), true), {}, 1)[0]);
  return e.status();
}

tn_status cost(void*, const tn_op* op, tn_cost* out, tn_diag*) {
  const Dims kernel = attr_ints(*op, TN_KEY_KERNEL);
  return set_cost(out, TN_BOUND_MEMORY, elements(op->type[1]) * static_cast<double>(product(kernel)), operand_bytes(op));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const WindowCase& c : pooling_cases()) all.push_back({{operand(c.x, Fill::Spaced)}, sliding_case_attrs(c.s, true)});
  for (Layout layout : {Layout::Permuted, Layout::Gapped})
    all.push_back({{operand({2, 3, 6, 5}, Fill::Spaced, layout)}, {case_ints(TN_KEY_STRIDES, {2, 2}), case_ints(TN_KEY_KERNEL, {2, 2})}});
  return all;
}

}  // namespace

extern const OpDecl op_max_pool2d{
    .def = {.size = sizeof(tn_op_def), .op_id = TN_OPID_MAX_POOL2D, .version = 1, .n_in = 1, .n_out = 1, .n_attr_defs = std::size(kAttrs),
            .name = "max_pool2d", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp, .cost = cost},
    .summary = "The largest element of each window.",
    .formula = "y[n, c, i, j] = max over k, l of x[n, c, i*s - lo + k*dil, j*s - lo + l*dil]",
    .semantics = "Padding counts as the lowest value (-inf). A NaN wins. The gradient goes to the first maximum of a window in row-major order, all of "
                 "it. A window of padding alone gives the lowest value and no gradient.",
    .example = "f32[1,3,8,8] kernel=2,2 strides=2,2",
    .cases = cases,
    .dtypes = kNumbers,
    .ulp_f32 = 0};

}  // namespace tenon::ops
