// Gradient of avg_pool2d: every tap of a window gets its share of the cotangent.
#include "ops/conv/average.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_required(TN_KEY_DIMS, TN_ATTR_I64S, "dims"), TENON_SLIDING_ATTRS,
                                  def_required(TN_KEY_KERNEL, TN_ATTR_I64S, "kernel"), def_i64(TN_KEY_INCLUDE_PAD, "include_pad", 0)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const char* const name = "avg_pool2d_grad";
  const tn_type& dy = op->type[0];
  const Calc calc{dims};
  Sliding s;
  Dims x_dims, places;
  if (tn_status st = need_float(d, name, "dy", dy); st != TN_OK) return st;
  if (tn_status st = read_dims(d, name, op, &x_dims); st != TN_OK) return st;
  if (tn_status st = need_rank(d, name, "dims", shape_type(dy.dtype, x_dims), 4, 4); st != TN_OK) return st;
  if (tn_status st = read_sliding(d, name, op, true, &s); st != TN_OK) return st;
  if (tn_status st = window_places(d, name, s, x_dims[2], x_dims[3], calc, &places); st != TN_OK) return st;
  if (tn_status st = need_dims(d, name, "dy", dy, {x_dims[0], x_dims[1], places[0], places[1]}, calc); st != TN_OK) return st;
  set_image(out, dy.dtype, x_dims, dy, dims);
  return TN_OK;
}

// Shares spread by the strides, then summed over the windows that meet each element: the kernel of ones is its own mirror.
tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type &dy = e.self().type[0], &x = e.self().type[1];
  const Calc calc = calc_of(b);
  const Sliding s = sliding_of(e.self(), true);
  const uint32_t wide = compute_type(dy.dtype);
  const Value shares = divide_by_count(e, widen(e, e.in(0)), s, x.dim[2], x.dim[3], attr_i64(e.self(), TN_KEY_INCLUDE_PAD, 0) != 0, wide);
  Sliding turned = s;
  turned.strides = {1, 1};
  Dims lo, hi, interior;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t reach = (s.kernel[i] - 1) * s.dilations[i], spread = (dy.dim[2 + i] - 1) * s.strides[i] + 1;
    lo.push_back(reach - s.lo[i]);
    hi.push_back(x.dim[2 + i] + reach - lo[i] - spread);
    interior.push_back(s.strides[i] - 1);
  }
  const Value view = windows(e, pad_image(e, shares, lo, hi, interior, 0, calc), turned);
  e.result(0, as_image(e, cast_to(e, reduce_windows(e, TN_OPID_SUM, view, x, calc), dy.dtype), x, calc));
  return e.status();
}

// The adjoint of the gradient is the pooling itself.
tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  if (!e.seed(0)) return e.status();
  std::vector<Attr> attrs = sliding_attrs(sliding_of(e.self(), true), true);
  attrs.push_back(Attr::i64(TN_KEY_INCLUDE_PAD, attr_i64(e.self(), TN_KEY_INCLUDE_PAD, 0)));
  const Value in[] = {e.seed(0)};
  e.result(0, e.ops(TN_OPID_AVG_POOL2D, in, attrs, {}, 1)[0]);
  return e.status();
}

tn_status cost(void*, const tn_op* op, tn_cost* out, tn_diag*) {
  const Dims kernel = attr_ints(*op, TN_KEY_KERNEL);
  return set_cost(out, TN_BOUND_MEMORY, elements(op->type[0]) * static_cast<double>(product(kernel)), operand_bytes(op));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const WindowCase& c : pooling_cases())
    for (int64_t include : {0, 1}) {
      if (include == 1 && c.s.lo == Dims{0, 0} && c.s.hi == Dims{0, 0}) continue;
      const Dims places = window_places_of(c);
      Case made{{operand({c.x[0], c.x[1], places[0], places[1]})}, sliding_case_attrs(c.s, true)};
      made.attrs.push_back(case_ints(TN_KEY_DIMS, c.x));
      made.attrs.push_back(case_i64(TN_KEY_INCLUDE_PAD, include));
      all.push_back(made);
    }
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast})
    all.push_back({{operand({2, 3, 3, 2}, Fill::Normal, layout)},
                   {case_ints(TN_KEY_DIMS, {2, 3, 6, 5}), case_ints(TN_KEY_STRIDES, {2, 2}), case_ints(TN_KEY_KERNEL, {2, 2})}});
  return all;
}

}  // namespace

extern const OpDecl op_avg_pool2d_grad{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_WIDE, .op_id = TN_OPID_AVG_POOL2D_GRAD, .version = 1, .n_in = 1, .n_out = 1,
            .n_attr_defs = std::size(kAttrs), .name = "avg_pool2d_grad", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp,
            .cost = cost},
    .summary = "Gradient of avg_pool2d.",
    .formula = "dx[m] = sum over the windows that hold element m, of dy / count of that window",
    .semantics = "dims are those of x. Elements that no window holds get 0. Sums in f32 for narrow types.",
    .example = "f32[1,3,4,4] dims=1,3,8,8 kernel=2,2 strides=2,2",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 8};

}  // namespace tenon::ops
