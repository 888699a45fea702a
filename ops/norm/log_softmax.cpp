// Logarithms of probabilities along one axis.
#include "ops/norm/norm_tools.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_i64(TN_KEY_AXIS, "axis", -1)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  int64_t axis = 0;
  if (tn_status s = need_float(d, "log_softmax", "x", op->type[0]); s != TN_OK) return s;
  if (tn_status s = read_axis(d, "log_softmax", op, -1, op->type[0].rank, &axis); s != TN_OK) return s;
  set_type(out, op->type[0].dtype, dims_of(op->type[0]), dims);
  return TN_OK;
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& type = e.self().type[0];
  const int64_t axis = normalise_axis(attr_i64(e.self(), TN_KEY_AXIS, -1), type.rank);
  const Value x = row_major(e, e.in(0)), top = reduce_axes(e, TN_OPID_MAX, x, {axis}, true);
  ProgramBuilder raise(type.dtype);
  raise.output(raise.op(TN_OP_EXP, raise.op(TN_OP_SUB, raise.input(0), raise.input(1))), raise.compute());
  const Value shifted[] = {x, top};
  const Value sum = reduce_axes(e, TN_OPID_SUM, pointwise(e, raise, shifted), {axis}, true);
  ProgramBuilder p(type.dtype);
  p.output(p.op(TN_OP_SUB, p.op(TN_OP_SUB, p.input(0), p.input(1)), p.op(TN_OP_LOG, p.input(2, p.compute()))));
  const Value in[] = {x, top, sum};
  e.result(0, pointwise(e, p, in));
  return e.status();
}

// dx = dy - exp(y) * sum(dy)
tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& type = e.self().type[0];
  if (!e.seed(0)) return e.status();
  const int64_t axis = normalise_axis(attr_i64(e.self(), TN_KEY_AXIS, -1), type.rank);
  const Value y = widen(e, e.out(0)), dy = widen(e, e.seed(0));
  const Value sum = reduce_axes(e, TN_OPID_SUM, dy, {axis}, true);
  const Value spread = e.op(TN_OPID_MUL, {e.op(TN_OPID_EXP, {y}), sum});
  e.result(0, cast_to(e, e.op(TN_OPID_SUB, {dy, spread}), type.dtype));
  return e.status();
}

}  // namespace

extern const OpDecl op_log_softmax{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_WIDE, .op_id = TN_OPID_LOG_SOFTMAX, .version = 1, .n_in = 1, .n_out = 1,
            .n_attr_defs = std::size(kAttrs), .name = "log_softmax", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp,
            .cost = cost_elements<8>},
    .summary = "Logarithms of probabilities along one axis.",
    .formula = "y[i] = x[i] - max x - log(sum(exp(x - max x))) along axis",
    .semantics = "A NaN makes its row NaN. A row of -inf gives NaN, and so does a row with +inf (Inf - Inf). Single -inf stay -inf. "
                 "Narrow types compute in f32.",
    .example = "f32[2,3] axis=-1",
    .cases = [] { return axis_cases(); },
    .dtypes = kFloats,
    .ulp_f32 = 16};

}  // namespace tenon::ops
