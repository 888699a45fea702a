// Gradients of layer_norm from its saved statistics.
#include "ops/norm/norm_tools.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_i64(TN_KEY_AXIS, "axis", -1)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const char* const name = "layer_norm_grad";
  const tn_type &x = op->type[0], &scale = op->type[1];
  const Calc calc{dims};
  int64_t axis = 0;
  if (tn_status s = need_float(d, name, "x", x); s != TN_OK) return s;
  if (tn_status s = read_axis(d, name, op, -1, x.rank, &axis); s != TN_OK) return s;
  const Dims params(x.dim + axis, x.dim + x.rank);
  Dims kept(x.dim, x.dim + axis);
  kept.resize(x.rank, 1);
  tn_type wide = x;
  wide.dtype = static_cast<uint8_t>(compute_type(x.dtype));
  if (scale.dtype != 0) {
    if (tn_status s = need_same_dtype(d, name, "scale", scale, x); s != TN_OK) return s;
    if (tn_status s = need_dims(d, name, "scale", scale, params, calc); s != TN_OK) return s;
  }
  for (uint32_t i : {2u, 3u}) {
    const char* const operand = i == 2 ? "mean" : "rstd";
    if (tn_status s = need_same_dtype(d, name, operand, op->type[i], wide); s != TN_OK) return s;
    if (tn_status s = need_dims(d, name, operand, op->type[i], kept, calc); s != TN_OK) return s;
  }
  if (tn_status s = need_same_dtype(d, name, "dy", op->type[4], x); s != TN_OK) return s;
  if (tn_status s = need_dims(d, name, "dy", op->type[4], dims_of(x), calc); s != TN_OK) return s;
  set_type(&out[0], x.dtype, dims_of(x), dims);
  set_type(&out[1], x.dtype, params, dims);
  set_type(&out[2], x.dtype, params, dims);
  return TN_OK;
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& type = e.self().type[0];
  const int64_t axis = normalise_axis(attr_i64(e.self(), TN_KEY_AXIS, -1), type.rank);
  Dims outer, inner;
  for (int64_t i = 0; i < type.rank; ++i) (i < axis ? outer : inner).push_back(i);
  const Value x = row_major(e, e.in(0)), mean = e.in(2), rstd = e.in(3), dy = widen(e, e.in(4));
  const Value xhat = normalise(e, x, mean, rstd, {}, {}, compute_type(type.dtype));
  if (e.needs(0)) {
    const Value g = e.in(1) ? e.op(TN_OPID_MUL, {dy, widen(e, e.in(1))}) : dy;
    const Value m1 = reduce_axes(e, TN_OPID_MEAN, g, inner, true);
    const Value m2 = reduce_axes(e, TN_OPID_MEAN, e.op(TN_OPID_MUL, {g, xhat}), inner, true);
    e.result(0, normal_gradient(e, x, mean, rstd, g, m1, m2, type.dtype));
  }
  if (e.needs(1)) e.result(1, cast_to(e, reduce_axes(e, TN_OPID_SUM, e.op(TN_OPID_MUL, {xhat, dy}), outer, false), type.dtype));
  if (e.needs(2)) e.result(2, row_major(e, cast_to(e, reduce_axes(e, TN_OPID_SUM, dy, outer, false), type.dtype)));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  struct Row { Dims dims; int64_t axis; };
  const Row rows[] = {{{7}, 0}, {{2, 3}, -1}, {{2, 3}, 0}, {{0, 3}, 1}, {{4, 1}, -1}, {{3, 63}, 1}, {{3, 65}, 1}, {{2, 3, 4}, 2}, {{2, 3, 4}, 1},
                      {{2, 3, 4, 5}, -2}, {{70, 5}, 1}};
  for (const Row& row : rows)
    for (bool scaled : {true, false}) {
      const auto begin = normalise_axis(row.axis, static_cast<int64_t>(row.dims.size()));
      const Dims params(row.dims.begin() + begin, row.dims.end());
      Dims kept(row.dims.begin(), row.dims.begin() + begin);
      kept.resize(row.dims.size(), 1);
      // Statistics are operands of their own here, in the compute type: f32 and f64 only, where it is x's own.
      Case c{{operand(row.dims), scaled ? operand(params) : absent_operand(), operand(kept), operand(kept, Fill::Positive), operand(row.dims)},
             {case_i64(TN_KEY_AXIS, row.axis)}};
      all.push_back(c);
    }
  for (Layout layout : {Layout::Permuted, Layout::Gapped})
    all.push_back({{operand({6, 5}, Fill::Normal, layout), operand({5}, Fill::Normal, layout), operand({6, 1}), operand({6, 1}, Fill::Positive),
                    operand({6, 5}, Fill::Normal, layout)}, {case_i64(TN_KEY_AXIS, 1)}});
  return all;
}

}  // namespace

// No vjp of its own: the parts of the expansion have theirs, which gives second derivatives.
extern const OpDecl op_layer_norm_grad{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_WIDE, .op_id = TN_OPID_LAYER_NORM_GRAD, .version = 1, .n_in = 5, .n_out = 3,
            .n_attr_defs = std::size(kAttrs), .name = "layer_norm_grad", .attr_defs = kAttrs, .infer = infer, .expand = expand,
            .cost = cost_elements<14>},
    .summary = "Gradients of layer_norm from its saved mean and reciprocal deviation.",
    .formula = "xhat = (x - mean) * rstd; g = dy * scale; dx = rstd * (g - mean(g) - xhat * mean(g * xhat)); dscale = sum(dy * xhat); dbias = sum(dy)",
    .semantics = "dscale and dbias are given even where the op had no scale or bias. Sums and means in f32 for narrow types.",
    .example = "f32[4,8] f32[8] f32[4,1] f32[4,1] f32[4,8]",
    .cases = cases,
    .dtypes = mask(TN_F32) | mask(TN_F64),
    .ulp_f32 = 64};

}  // namespace tenon::ops
