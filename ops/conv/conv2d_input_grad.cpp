// Gradient of conv2d with respect to x: the transposed convolution of dy.
#include <algorithm>

#include "ops/conv/conv_shapes.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_required(TN_KEY_DIMS, TN_ATTR_I64S, "dims"), TENON_SLIDING_ATTRS, def_i64(TN_KEY_GROUPS, "groups", 1)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const char* const name = "conv2d_input_grad";
  const tn_type &dy = op->type[0], &w = op->type[1];
  const Calc calc{dims};
  Sliding s;
  Dims x_dims, y_dims;
  if (tn_status st = need_float(d, name, "dy", dy); st != TN_OK) return st;
  if (tn_status st = need_same_dtype(d, name, "w", w, dy); st != TN_OK) return st;
  if (tn_status st = read_dims(d, name, op, &x_dims); st != TN_OK) return st;
  if (tn_status st = read_sliding(d, name, op, false, &s); st != TN_OK) return st;
  if (tn_status st = conv_output(d, name, shape_type(dy.dtype, x_dims), w, &s, calc, &y_dims); st != TN_OK) return st;
  if (tn_status st = need_dims(d, name, "dy", dy, y_dims, calc); st != TN_OK) return st;
  set_image(out, dy.dtype, x_dims, dy, dims);
  return TN_OK;
}

// Spread dy by the strides, turn w round, swap its channels inside each group, and correlate.
tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type &dy = e.self().type[0], &w = e.self().type[1], &x = e.self().type[2];
  const Calc calc = calc_of(b);
  Sliding s = sliding_of(e.self(), false), turned;
  Dims lo, hi, interior;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t reach = (w.dim[2 + i] - 1) * s.dilations[i], spread = (dy.dim[2 + i] - 1) * s.strides[i] + 1;
    lo.push_back(reach - s.lo[i]);
    hi.push_back(x.dim[2 + i] + reach - lo[i] - spread);
    interior.push_back(s.strides[i] - 1);
  }
  turned.strides = {1, 1};
  turned.dilations = s.dilations;
  turned.groups = s.groups;
  // A window op pads by itself where it can: that spares a copy of dy.
  const bool plain = std::min({lo[0], lo[1], hi[0], hi[1]}) >= 0 && interior == Dims{0, 0};
  turned.lo = plain ? lo : Dims{0, 0};
  turned.hi = plain ? hi : Dims{0, 0};
  const Value source = plain ? e.in(0) : pad_image(e, e.in(0), lo, hi, interior, 0, calc);
  const int64_t g = s.groups, outputs = w.dim[0] / g;
  const Value split = permute(e, reshape(e, e.in(1), {g, outputs, w.dim[1], w.dim[2], w.dim[3]}), {0, 2, 1, 3, 4});
  const Value swapped = reshape(e, split, {g * w.dim[1], outputs, w.dim[2], w.dim[3]});
  const Value in[] = {source, e.op(TN_OPID_FLIP, {swapped}, {Attr::ints(TN_KEY_AXES, {2, 3})}), Value{}};
  e.result(0, as_image(e, e.ops(TN_OPID_CONV2D, in, sliding_attrs(turned, false), {}, 1)[0], x, calc));
  return e.status();
}

// Linear in dy and in w: the cotangent u stands where x stood.
tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const Value u = e.seed(0);
  if (!u) return e.status();
  const Sliding s = sliding_of(e.self(), false);
  if (e.needs(0)) {
    const Value in[] = {u, e.in(1), Value{}};
    e.result(0, e.ops(TN_OPID_CONV2D, in, sliding_attrs(s, false), {}, 1)[0]);
  }
  if (e.needs(1)) {
    const Value in[] = {u, e.in(0)};
    e.result(1, e.ops(TN_OPID_CONV2D_WEIGHT_GRAD, in, sliding_attrs(s, false, dims_of(e.self().type[1])), {}, 1)[0]);
  }
  return e.status();
}

tn_status cost(void*, const tn_op* op, tn_cost* out, tn_diag*) {
  return set_cost(out, TN_BOUND_COMPUTE, conv_flops(op->type[0], op->type[1]), operand_bytes(op));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const ConvCase& c : conv_cases()) {
    std::vector<CaseAttr> attrs = sliding_case_attrs(c.window.s, false);
    attrs.push_back(case_ints(TN_KEY_DIMS, c.window.x));
    all.push_back({{operand(c.y()), operand(c.w())}, attrs});
  }
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast})
    all.push_back({{operand({2, 4, 4, 3}, Fill::Normal, layout), operand({4, 3, 3, 3})}, {case_ints(TN_KEY_DIMS, {2, 3, 6, 5})}});
  return all;
}

}  // namespace

extern const OpDecl op_conv2d_input_grad{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_MATMUL, .op_id = TN_OPID_CONV2D_INPUT_GRAD, .version = 1, .n_in = 2, .n_out = 1,
            .n_attr_defs = std::size(kAttrs), .name = "conv2d_input_grad", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp,
            .cost = cost},
    .summary = "Gradient of conv2d with respect to x; also the transposed convolution.",
    .formula = "dx = sum over all places of y that read x, of w * dy",
    .semantics = "dims are those of x: strides above 1 leave them open. Elements of x that no window reads get 0. Channels-last dy gives channels-last dx.",
    .example = "f32[1,4,6,6] f32[4,3,3,3] dims=1,3,8,8",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 16};

}  // namespace tenon::ops
