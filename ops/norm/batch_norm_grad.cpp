// Gradients of batch_norm from its saved statistics.
#include "ops/norm/batch_norm_shapes.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_f64(TN_KEY_EPSILON, "epsilon", 1e-5)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const char* const name = "batch_norm_grad";
  const tn_type &x = op->type[0], &scale = op->type[1], &dy = op->type[4];
  const Calc calc{dims};
  if (tn_status s = need_float(d, name, "x", x); s != TN_OK) return s;
  if (tn_status s = need_rank(d, name, "x", x, 2, TN_MAX_RANK); s != TN_OK) return s;
  if (scale.dtype != 0) {
    if (tn_status s = need_same_dtype(d, name, "scale", scale, x); s != TN_OK) return s;
    if (tn_status s = need_dims(d, name, "scale", scale, {x.dim[1]}, calc); s != TN_OK) return s;
  }
  if (tn_status s = check_statistic(d, name, "mean", op->type[2], x, false, calc); s != TN_OK) return s;
  if (tn_status s = check_statistic(d, name, "variance", op->type[3], x, false, calc); s != TN_OK) return s;
  if (tn_status s = need_same_dtype(d, name, "dy", dy, x); s != TN_OK) return s;
  if (tn_status s = need_dims(d, name, "dy", dy, dims_of(x), calc); s != TN_OK) return s;
  set_type(&out[0], x.dtype, dims_of(x), dims, &x);
  set_type(&out[1], x.dtype, {x.dim[1]}, dims);
  set_type(&out[2], x.dtype, {x.dim[1]}, dims);
  return TN_OK;
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& x = e.self().type[0];
  const Dims axes = all_but_channels(x);
  const Value mean = per_channel(e, e.in(2), x), dy = widen(e, e.in(4));
  const Value rstd = reciprocal_deviation(e, per_channel(e, e.in(3), x), attr_f64(e.self(), TN_KEY_EPSILON, 1e-5));
  const Value xhat = normalise(e, e.in(0), mean, rstd, {}, {}, compute_type(x.dtype));
  const Value weighted = e.op(TN_OPID_MUL, {xhat, dy});
  if (e.needs(0)) {
    const Value m1 = reduce_axes(e, TN_OPID_MEAN, dy, axes, true), m2 = reduce_axes(e, TN_OPID_MEAN, weighted, axes, true);
    const Value dx = normal_gradient(e, e.in(0), mean, rstd, dy, m1, m2, compute_type(x.dtype));
    const Value scale = e.in(1) ? per_channel(e, widen(e, e.in(1)), x) : Value{};
    e.result(0, cast_to(e, scale ? e.op(TN_OPID_MUL, {dx, scale}) : dx, x.dtype));
  }
  if (e.needs(1)) e.result(1, cast_to(e, reduce_axes(e, TN_OPID_SUM, weighted, axes, false), x.dtype));
  if (e.needs(2)) e.result(2, cast_to(e, reduce_axes(e, TN_OPID_SUM, dy, axes, false), x.dtype));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Dims& dims : batch_norm_dims())
    for (bool scaled : {true, false}) {
      const Dims c{dims[1]};
      // Statistics are operands of their own here, in the compute type: f32 and f64 only, where it is x's own.
      all.push_back({{operand(dims), scaled ? operand(c) : absent_operand(), operand(c), operand(c, Fill::Positive), operand(dims)},
                     {case_f64(TN_KEY_EPSILON, 1e-3)}});
    }
  for (Layout layout : {Layout::Permuted, Layout::Gapped})
    all.push_back({{operand({3, 2, 4, 5}, Fill::Normal, layout), operand({2}), operand({2}), operand({2}, Fill::Positive), operand({3, 2, 4, 5}, Fill::Normal, layout)}});
  return all;
}

}  // namespace

// No vjp of its own: the parts of the expansion have theirs, which gives second derivatives.
extern const OpDecl op_batch_norm_grad{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_WIDE, .op_id = TN_OPID_BATCH_NORM_GRAD, .version = 1, .n_in = 5, .n_out = 3,
            .n_attr_defs = std::size(kAttrs), .name = "batch_norm_grad", .attr_defs = kAttrs, .infer = infer, .expand = expand,
            .cost = cost_elements<14>},
    .summary = "Gradients of batch_norm from its saved mean and biased variance.",
    .formula = "xhat = (x - mean) * r, r = 1 / sqrt(variance + epsilon); dx = scale * r * (dy - mean(dy) - xhat * mean(dy * xhat)); "
               "dscale = sum(dy * xhat); dbias = sum(dy)",
    .semantics = "dscale and dbias are given even where the op had no scale or bias. Sums and means in f32 for narrow types.",
    .example = "f32[8,3,4,4] f32[3] f32[3] f32[3] f32[8,3,4,4]",
    .cases = cases,
    .dtypes = mask(TN_F32) | mask(TN_F64),
    .ulp_f32 = 64};

}  // namespace tenon::ops
