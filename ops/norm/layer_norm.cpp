// Rows brought to mean 0 and variance 1.
#include "ops/norm/norm_tools.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_i64(TN_KEY_AXIS, "axis", -1), def_f64(TN_KEY_EPSILON, "epsilon", 1e-5)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const tn_type& x = op->type[0];
  int64_t axis = 0;
  if (tn_status s = need_float(d, "layer_norm", "x", x); s != TN_OK) return s;
  if (tn_status s = read_axis(d, "layer_norm", op, -1, x.rank, &axis); s != TN_OK) return s;
  if (tn_status s = check_affine(d, "layer_norm", op, Dims(x.dim + axis, x.dim + x.rank), Calc{dims}); s != TN_OK) return s;
  Dims kept(x.dim, x.dim + axis);
  kept.resize(x.rank, 1);
  set_type(&out[0], x.dtype, dims_of(x), dims);
  set_type(&out[1], compute_type(x.dtype), kept, dims);
  set_type(&out[2], compute_type(x.dtype), kept, dims);
  return TN_OK;
}

// Two passes: the variance is a mean of squared distances, never a difference of large sums.
tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& type = e.self().type[0];
  Dims axes;
  for (int64_t i = normalise_axis(attr_i64(e.self(), TN_KEY_AXIS, -1), type.rank); i < type.rank; ++i) axes.push_back(i);
  const Value x = row_major(e, e.in(0)), wide = widen(e, x);
  const Value mean = reduce_axes(e, TN_OPID_MEAN, wide, axes, true);
  const Value distance = e.op(TN_OPID_SUB, {wide, mean});
  const Value variance = reduce_axes(e, TN_OPID_MEAN, e.op(TN_OPID_SQUARE, {distance}), axes, true);
  const Value rstd = reciprocal_deviation(e, variance, attr_f64(e.self(), TN_KEY_EPSILON, 1e-5));
  e.result(0, normalise(e, x, mean, rstd, e.in(1), e.in(2), type.dtype));
  e.result(1, mean);
  e.result(2, rstd);
  return e.status();
}

tn_status vjp(void* ctx, tn_builder* b, const tn_rule* r, tn_diag* d) {
  if (r->seed[1] != TN_NONE || r->seed[2] != TN_NONE) return vjp_by_expansion(expand, ctx, b, r, d);
  Emit e(b, r, d);
  if (!e.seed(0)) return e.status();
  const Value in[] = {e.in(0), e.in(1), e.out(1), e.out(2), e.seed(0)};
  const Attr axis = Attr::i64(TN_KEY_AXIS, attr_i64(e.self(), TN_KEY_AXIS, -1));
  const std::vector<Value> grads = e.ops(TN_OPID_LAYER_NORM_GRAD, in, std::span<const Attr>(&axis, 1), {}, 3);
  for (uint32_t i = 0; i < 3; ++i)
    if (r->in[i] != TN_NONE) e.result(i, grads[i]);
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  struct Row { Dims dims; int64_t axis; };
  const Row rows[] = {{{7}, 0}, {{2, 3}, -1}, {{2, 3}, 0}, {{0, 3}, 1}, {{4, 2}, -1}, {{3, 63}, 1}, {{3, 64}, 1}, {{3, 65}, 1}, {{2, 3, 4}, 2},
                      {{2, 3, 4}, 1}, {{2, 3, 4}, 0}, {{2, 3, 4, 5}, -2}, {{1, 1, 9}, 2}, {{70, 5}, 1}};
  for (const Row& row : rows) {
    const auto begin = normalise_axis(row.axis, static_cast<int64_t>(row.dims.size()));
    const Dims params(row.dims.begin() + begin, row.dims.end());
    const std::vector<CaseAttr> attrs{case_i64(TN_KEY_AXIS, row.axis), case_f64(TN_KEY_EPSILON, 1e-3)};
    all.push_back({{operand(row.dims), operand(params), operand(params)}, attrs});
    all.push_back({{operand(row.dims), absent_operand(), absent_operand()}, attrs});
  }
  all.push_back({{operand({3, 8}), operand({8}), absent_operand()}});
  all.push_back({{operand({3, 8}), absent_operand(), operand({8})}});
  for (Layout layout : {Layout::Permuted, Layout::Gapped}) all.push_back({{operand({6, 5}, Fill::Normal, layout), operand({5}), operand({5})}});
  return all;
}

}  // namespace

extern const OpDecl op_layer_norm{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_WIDE, .op_id = TN_OPID_LAYER_NORM, .version = 1, .n_in = 3, .n_out = 3,
            .n_attr_defs = std::size(kAttrs), .name = "layer_norm", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp,
            .cost = cost_elements<8>},
    .summary = "Rows brought to mean 0 and variance 1, then scaled and shifted.",
    .formula = "y = (x - mean) / sqrt(variance + epsilon) * scale + bias over the axes from `axis` on; also mean and 1 / sqrt(variance + epsilon)",
    .semantics = "Population variance in two passes, in f32 for narrow types. Mean and reciprocal deviation are in the compute type, their reduced "
                 "axes are 1. A NaN or Inf makes its row NaN. Rows of no element have mean NaN.",
    .example = "f32[4,8] f32[8] f32[8]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 32};

}  // namespace tenon::ops
