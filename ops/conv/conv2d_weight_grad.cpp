// Gradient of conv2d with respect to w.
#include "ops/conv/conv_shapes.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_required(TN_KEY_DIMS, TN_ATTR_I64S, "dims"), TENON_SLIDING_ATTRS, def_i64(TN_KEY_GROUPS, "groups", 1)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const char* const name = "conv2d_weight_grad";
  const tn_type &x = op->type[0], &dy = op->type[1];
  const Calc calc{dims};
  Sliding s;
  Dims w_dims, y_dims;
  if (tn_status st = need_float(d, name, "x", x); st != TN_OK) return st;
  if (tn_status st = need_same_dtype(d, name, "dy", dy, x); st != TN_OK) return st;
  if (tn_status st = read_dims(d, name, op, &w_dims); st != TN_OK) return st;
  if (tn_status st = read_sliding(d, name, op, false, &s); st != TN_OK) return st;
  if (tn_status st = conv_output(d, name, x, shape_type(x.dtype, w_dims), &s, calc, &y_dims); st != TN_OK) return st;
  if (tn_status st = need_dims(d, name, "dy", dy, y_dims, calc); st != TN_OK) return st;
  set_type(out, x.dtype, w_dims, dims);
  return TN_OK;
}

// One product for each group, summed over images and places.
tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type &dy = e.self().type[1], &w = e.self().type[2];
  Sliding s = sliding_of(e.self(), false);
  s.kernel = {w.dim[2], w.dim[3]};
  const int64_t n = dy.dim[0], g = s.groups, per_group = w.dim[0] / g, taps = w.dim[1] * w.dim[2] * w.dim[3];
  const int64_t places = n * dy.dim[2] * dy.dim[3];
  const Value view = permute(e, grouped_windows(e, e.in(0), s, calc_of(b)), {1, 0, 3, 4, 2, 5, 6});
  const Value rows = reshape(e, view, {g, places, taps});
  const Value split = reshape(e, e.in(1), {n, g, per_group, dy.dim[2], dy.dim[3]});
  const Value left = reshape(e, permute(e, split, {1, 2, 0, 3, 4}), {g, per_group, places});
  e.result(0, reshape(e, e.op(TN_OPID_MATMUL, {left, rows}), dims_of(w)));
  return e.status();
}

// Linear in x and in dy: the cotangent u stands where w stood.
tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const Value u = e.seed(0);
  if (!u) return e.status();
  const Sliding s = sliding_of(e.self(), false);
  if (e.needs(0)) {
    const Value in[] = {e.in(1), u};
    e.result(0, e.ops(TN_OPID_CONV2D_INPUT_GRAD, in, sliding_attrs(s, false, dims_of(e.self().type[0])), {}, 1)[0]);
  }
  if (e.needs(1)) {
    const Value in[] = {e.in(0), u, Value{}};
    e.result(1, e.ops(TN_OPID_CONV2D, in, sliding_attrs(s, false), {}, 1)[0]);
  }
  return e.status();
}

tn_status cost(void*, const tn_op* op, tn_cost* out, tn_diag*) {
  return set_cost(out, TN_BOUND_COMPUTE, conv_flops(op->type[1], op->type[2]), operand_bytes(op));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const ConvCase& c : conv_cases()) {
    std::vector<CaseAttr> attrs = sliding_case_attrs(c.window.s, false);
    attrs.push_back(case_ints(TN_KEY_DIMS, c.w()));
    all.push_back({{operand(c.window.x), operand(c.y())}, attrs});
  }
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast})
    all.push_back({{operand({2, 3, 6, 5}, Fill::Normal, layout), operand({2, 4, 4, 3}, Fill::Normal, layout)}, {case_ints(TN_KEY_DIMS, {4, 3, 3, 3})}});
  return all;
}

}  // namespace

extern const OpDecl op_conv2d_weight_grad{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_MATMUL, .op_id = TN_OPID_CONV2D_WEIGHT_GRAD, .version = 1, .n_in = 2, .n_out = 1,
            .n_attr_defs = std::size(kAttrs), .name = "conv2d_weight_grad", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp,
            .cost = cost},
    .summary = "Gradient of conv2d with respect to w.",
    .formula = "dw[o, c, k, l] = sum over n, i, j of dy[n, o, i, j] * x[n, group(o) * C/groups + c, i*s - lo + k*dil, j*s - lo + l*dil]",
    .semantics = "dims are those of w. Row-major whatever the strides of x and dy. An empty batch gives zeros. Narrow floats accumulate in f32.",
    .example = "f32[1,3,8,8] f32[1,4,6,6] dims=4,3,3,3",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 16};

}  // namespace tenon::ops
