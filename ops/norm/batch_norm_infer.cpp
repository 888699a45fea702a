// Channels normalised by statistics that are given.
#include "ops/norm/batch_norm_shapes.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_f64(TN_KEY_EPSILON, "epsilon", 1e-5)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const tn_type& x = op->type[0];
  const Calc calc{dims};
  if (tn_status s = check_batch_norm(d, "batch_norm_infer", op, calc); s != TN_OK) return s;
  if (tn_status s = check_statistic(d, "batch_norm_infer", "mean", op->type[3], x, true, calc); s != TN_OK) return s;
  if (tn_status s = check_statistic(d, "batch_norm_infer", "variance", op->type[4], x, true, calc); s != TN_OK) return s;
  set_type(out, x.dtype, dims_of(x), dims, &x);
  return TN_OK;
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& x = e.self().type[0];
  const Value mean = per_channel(e, widen(e, e.in(3)), x);
  const Value rstd = reciprocal_deviation(e, per_channel(e, widen(e, e.in(4)), x), attr_f64(e.self(), TN_KEY_EPSILON, 1e-5));
  e.result(0, normalise(e, e.in(0), mean, rstd, per_channel(e, e.in(1), x), per_channel(e, e.in(2), x), x.dtype));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Dims& dims : batch_norm_dims()) {
    const Dims c{dims[1]};
    all.push_back({{operand(dims), operand(c), operand(c), operand(c), operand(c, Fill::Positive)}, {case_f64(TN_KEY_EPSILON, 1e-3)}});
    all.push_back({{operand(dims), absent_operand(), absent_operand(), operand(c), operand(c, Fill::Positive)}});
  }
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast})
    all.push_back({{operand({3, 2, 4, 5}, Fill::Normal, layout), operand({2}), operand({2}), operand({2}), operand({2}, Fill::Positive)}});
  return all;
}

}  // namespace

// No vjp of its own: the parts of the expansion have theirs.
extern const OpDecl op_batch_norm_infer{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_WIDE, .op_id = TN_OPID_BATCH_NORM_INFER, .version = 1, .n_in = 5, .n_out = 1,
            .n_attr_defs = std::size(kAttrs), .name = "batch_norm_infer", .attr_defs = kAttrs, .infer = infer, .expand = expand,
            .cost = cost_elements<4>},
    .summary = "Channels normalised by given statistics.",
    .formula = "y = (x - mean[c]) / sqrt(variance[c] + epsilon) * scale[c] + bias[c]",
    .semantics = "mean and variance are in the compute type or in x's own. Computed in f32 for narrow types and rounded once. A variance below "
                 "-epsilon gives NaN.",
    .example = "f32[8,3,4,4] f32[3] f32[3] f32[3] f32[3]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 16};

}  // namespace tenon::ops
