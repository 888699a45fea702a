// Probabilities along one axis.
#include "ops/norm/norm_tools.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_i64(TN_KEY_AXIS, "axis", -1)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  int64_t axis = 0;
  if (tn_status s = need_float(d, "softmax", "x", op->type[0]); s != TN_OK) return s;
  if (tn_status s = read_axis(d, "softmax", op, -1, op->type[0].rank, &axis); s != TN_OK) return s;
  set_type(out, op->type[0].dtype, dims_of(op->type[0]), dims);
  return TN_OK;
}

// exp(x - top), in the compute type.
Value shifted_exp(Emit& e, Value x, Value top, uint32_t dtype) {
  ProgramBuilder p(dtype);
  p.output(p.op(TN_OP_EXP, p.op(TN_OP_SUB, p.input(0), p.input(1))), p.compute());
  const Value in[] = {x, top};
  return pointwise(e, p, in);
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& type = e.self().type[0];
  const int64_t axis = normalise_axis(attr_i64(e.self(), TN_KEY_AXIS, -1), type.rank);
  const Value x = row_major(e, e.in(0));
  const Value raised = shifted_exp(e, x, reduce_axes(e, TN_OPID_MAX, x, {axis}, true), type.dtype);
  const Value sum = reduce_axes(e, TN_OPID_SUM, raised, {axis}, true);
  ProgramBuilder p(type.dtype);
  p.output(p.op(TN_OP_DIV, p.input(0, p.compute()), p.input(1, p.compute())));
  const Value in[] = {raised, sum};
  e.result(0, pointwise(e, p, in));
  return e.status();
}

// dx = y * (dy - sum(dy * y))
tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& type = e.self().type[0];
  if (!e.seed(0)) return e.status();
  const int64_t axis = normalise_axis(attr_i64(e.self(), TN_KEY_AXIS, -1), type.rank);
  const Value y = widen(e, e.out(0)), dy = widen(e, e.seed(0));
  const Value sum = reduce_axes(e, TN_OPID_SUM, e.op(TN_OPID_MUL, {dy, y}), {axis}, true);
  e.result(0, cast_to(e, e.op(TN_OPID_MUL, {y, e.op(TN_OPID_SUB, {dy, sum})}), type.dtype));
  return e.status();
}

}  // namespace

extern const OpDecl op_softmax{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_WIDE, .op_id = TN_OPID_SOFTMAX, .version = 1, .n_in = 1, .n_out = 1,
            .n_attr_defs = std::size(kAttrs), .name = "softmax", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp,
            .cost = cost_elements<8>},
    .summary = "Probabilities along one axis.",
    .formula = "y[i] = exp(x[i] - max x) / sum(exp(x - max x)) along axis",
    .semantics = "A NaN makes its row NaN. A row of -inf gives NaN, and so does a row with +inf (Inf - Inf). Single -inf give 0. Large "
                 "finite values do not overflow. Narrow types compute in f32.",
    .example = "f32[2,3] axis=-1",
    .cases = [] { return axis_cases(); },
    .dtypes = kFloats,
    .ulp_f32 = 16};

}  // namespace tenon::ops
