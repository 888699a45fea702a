// Channels brought to mean 0 and variance 1 by the batch's own statistics.
#include "ops/norm/batch_norm_shapes.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_f64(TN_KEY_EPSILON, "epsilon", 1e-5)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const tn_type& x = op->type[0];
  if (tn_status s = check_batch_norm(d, "batch_norm", op, Calc{dims}); s != TN_OK) return s;
  set_type(&out[0], x.dtype, dims_of(x), dims, &x);
  set_type(&out[1], compute_type(x.dtype), {x.dim[1]}, dims);
  set_type(&out[2], compute_type(x.dtype), {x.dim[1]}, dims);
  return TN_OK;
}

// Two passes: the variance is a mean of squared distances, never a difference of large sums.
tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& x = e.self().type[0];
  const Dims axes = all_but_channels(x);
  const Value wide = widen(e, e.in(0));
  const Value mean = reduce_axes(e, TN_OPID_MEAN, wide, axes, true);
  const Value squares = e.op(TN_OPID_SQUARE, {e.op(TN_OPID_SUB, {wide, mean})});
  const Value variance = reduce_axes(e, TN_OPID_MEAN, squares, axes, true);
  const Value rstd = reciprocal_deviation(e, variance, attr_f64(e.self(), TN_KEY_EPSILON, 1e-5));
  e.result(0, normalise(e, e.in(0), mean, rstd, per_channel(e, e.in(1), x), per_channel(e, e.in(2), x), x.dtype));
  e.result(1, reshape(e, mean, {x.dim[1]}));
  e.result(2, reshape(e, variance, {x.dim[1]}));
  return e.status();
}

tn_status vjp(void* ctx, tn_builder* b, const tn_rule* r, tn_diag* d) {
  if (r->seed[1] != TN_NONE || r->seed[2] != TN_NONE) return vjp_by_expansion(expand, ctx, b, r, d);
  Emit e(b, r, d);
  if (!e.seed(0)) return e.status();
  const Value in[] = {e.in(0), e.in(1), e.out(1), e.out(2), e.seed(0)};
  const Attr epsilon = Attr::f64(TN_KEY_EPSILON, attr_f64(e.self(), TN_KEY_EPSILON, 1e-5));
  const std::vector<Value> grads = e.ops(TN_OPID_BATCH_NORM_GRAD, in, std::span<const Attr>(&epsilon, 1), {}, 3);
  for (uint32_t i = 0; i < 3; ++i)
    if (r->in[i] != TN_NONE) e.result(i, grads[i]);
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Dims& dims : batch_norm_dims()) {
    const std::vector<CaseAttr> attrs{case_f64(TN_KEY_EPSILON, 1e-3)};
    all.push_back({{operand(dims), operand({dims[1]}), operand({dims[1]})}, attrs});
    all.push_back({{operand(dims), absent_operand(), absent_operand()}, attrs});
    if (dims[0] == 0) all[all.size() - 1].differentiable = all[all.size() - 2].differentiable = false;  // statistics are NaN
  }
  for (Layout layout : {Layout::Permuted, Layout::Gapped})
    all.push_back({{operand({3, 2, 4, 5}, Fill::Normal, layout), operand({2}), operand({2})}});
  return all;
}

}  // namespace

extern const OpDecl op_batch_norm{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_WIDE, .op_id = TN_OPID_BATCH_NORM, .version = 1, .n_in = 3, .n_out = 3,
            .n_attr_defs = std::size(kAttrs), .name = "batch_norm", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp,
            .cost = cost_elements<8>},
    .summary = "Channels brought to mean 0 and variance 1 by the batch's own statistics.",
    .formula = "y = (x - mean[c]) / sqrt(variance[c] + epsilon) * scale[c] + bias[c]; also mean [C] and biased variance [C]",
    .semantics = "Population variance in two passes, in f32 for narrow types. Running averages are the caller's: they take the biased variance "
                 "times n / (n - 1) if wanted. An empty batch has mean NaN.",
    .example = "f32[8,3,4,4] f32[3] f32[3]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 32};

}  // namespace tenon::ops
