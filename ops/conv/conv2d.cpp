// Two-dimensional cross-correlation with groups, strides, dilations and padding.
#include "ops/conv/conv_shapes.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {TENON_SLIDING_ATTRS, def_i64(TN_KEY_GROUPS, "groups", 1)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const tn_type &x = op->type[0], &w = op->type[1], &bias = op->type[2];
  const Calc calc{dims};
  Sliding s;
  Dims result;
  if (tn_status st = need_float(d, "conv2d", "x", x); st != TN_OK) return st;
  if (tn_status st = need_same_dtype(d, "conv2d", "w", w, x); st != TN_OK) return st;
  if (tn_status st = read_sliding(d, "conv2d", op, false, &s); st != TN_OK) return st;
  if (tn_status st = conv_output(d, "conv2d", x, w, &s, calc, &result); st != TN_OK) return st;
  if (bias.dtype != 0) {
    if (tn_status st = need_same_dtype(d, "conv2d", "bias", bias, x); st != TN_OK) return st;
    if (tn_status st = need_dims(d, "conv2d", "bias", bias, {w.dim[0]}, calc); st != TN_OK) return st;
  }
  set_image(out, x.dtype, result, x, dims);
  return TN_OK;
}

// a x b, with a bias of the given dims added before the one rounding to storage.
Value product_with_bias(Emit& e, Value a, Value b, Value bias, const Dims& bias_dims, uint32_t dtype) {
  if (!bias) return e.op(TN_OPID_MATMUL, {a, b}, {Attr::i64(TN_KEY_DTYPE, dtype)});
  ProgramBuilder p(dtype);
  p.output(p.op(TN_OP_ADD, p.input(0, p.compute()), p.input(1)));
  return e.op(TN_OPID_MATMUL, {a, b, reshape(e, bias, bias_dims)}, {Attr::program(TN_KEY_POST, p.finish())});
}

// Windows laid out as the columns (row-major) or rows (channels-last) of a matrix, one product for each image and group.
tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type &x = e.self().type[0], &w = e.self().type[1], &y = e.self().type[3];
  const Calc calc = calc_of(b);
  Sliding s = sliding_of(e.self(), false);
  s.kernel = {w.dim[2], w.dim[3]};
  const int64_t n = y.dim[0], g = s.groups, per_group = y.dim[1] / g, inputs = w.dim[1], taps = inputs * w.dim[2] * w.dim[3];
  const int64_t places = y.dim[2] * y.dim[3];
  const Value view = grouped_windows(e, e.in(0), s, calc);
  if (!channels_last(y, calc)) {
    const Value columns = reshape(e, permute(e, view, {0, 1, 2, 5, 6, 3, 4}), {n, g, taps, places});
    const Value rows = reshape(e, e.in(1), {1, g, per_group, taps});
    e.result(0, reshape(e, product_with_bias(e, rows, columns, e.in(2), {1, g, per_group, 1}, x.dtype), dims_of(y)));
    return e.status();
  }
  const Value rows = reshape(e, permute(e, view, {0, 1, 3, 4, 5, 6, 2}), {n, g, places, taps});
  const Value split = reshape(e, e.in(1), {g, per_group, inputs, w.dim[2], w.dim[3]});
  const Value columns = reshape(e, permute(e, split, {0, 3, 4, 2, 1}), {1, g, taps, per_group});
  const Value out = product_with_bias(e, rows, columns, e.in(2), {1, g, 1, per_group}, x.dtype);
  const Value last = reshape(e, permute(e, out, {0, 2, 1, 3}), {n, y.dim[2], y.dim[3], y.dim[1]});
  // With one output a group the reshape is a view of row-major memory, hence the last word on order.
  e.result(0, as_image(e, permute(e, last, {0, 3, 1, 2}), y, calc));
  return e.status();
}

tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const Value dy = e.seed(0);
  if (!dy) return e.status();
  const Sliding s = sliding_of(e.self(), false);
  if (e.needs(0)) {
    const Value in[] = {dy, e.in(1)};
    e.result(0, e.ops(TN_OPID_CONV2D_INPUT_GRAD, in, sliding_attrs(s, false, dims_of(e.self().type[0])), {}, 1)[0]);
  }
  if (e.needs(1)) {
    const Value in[] = {e.in(0), dy};
    e.result(1, e.ops(TN_OPID_CONV2D_WEIGHT_GRAD, in, sliding_attrs(s, false, dims_of(e.self().type[1])), {}, 1)[0]);
  }
  if (e.has(2) && e.needs(2)) e.result(2, reduce_axes(e, TN_OPID_SUM, dy, {0, 2, 3}, false));
  return e.status();
}

tn_status cost(void*, const tn_op* op, tn_cost* out, tn_diag*) {
  return set_cost(out, TN_BOUND_COMPUTE, conv_flops(op->type[3], op->type[1]), operand_bytes(op));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  bool biased = false;
  for (const ConvCase& c : conv_cases()) {
    biased = !biased;
    all.push_back({{operand(c.window.x), operand(c.w()), biased ? operand({c.outputs}) : absent_operand()}, sliding_case_attrs(c.window.s, false)});
  }
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast})
    all.push_back({{operand({2, 3, 6, 5}, Fill::Normal, layout), operand({4, 3, 3, 3}, Fill::Normal, layout), operand({4})}});
  return all;
}

}  // namespace

extern const OpDecl op_conv2d{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_MATMUL, .op_id = TN_OPID_CONV2D, .version = 1, .n_in = 3, .n_out = 1,
            .n_attr_defs = std::size(kAttrs), .name = "conv2d", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp, .cost = cost},
    .summary = "Two-dimensional cross-correlation.",
    .formula = "y[n, o, i, j] = bias[o] + sum over c, k, l of w[o, c, k, l] * x[n, group(o) * C/groups + c, i*s - lo + k*dil, j*s - lo + l*dil]",
    .semantics = "Places outside x count as 0; where a window reaches over the edge and w holds Inf or NaN, the result is left open (0 * Inf may "
                 "enter). No channel gives bias, or 0. Narrow floats accumulate in f32 and round once, bias included; bf16 subnormals may be read as 0 "
                 "unless TN_MATH_SUBNORMAL. A channels-last x gives a channels-last y, all else row-major.",
    .example = "f32[1,3,8,8] f32[4,3,3,3] f32[4]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 16};

}  // namespace tenon::ops
