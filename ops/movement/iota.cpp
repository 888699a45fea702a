// The index along one axis.
#include "ops/movement/rule_tools.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_required(TN_KEY_DIMS, TN_ATTR_I64S, "dims"), def_i64(TN_KEY_AXIS, "axis", 0),
                                  def_i64(TN_KEY_DTYPE, "dtype", TN_I64)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const int64_t dtype = attr_i64(*op, TN_KEY_DTYPE, TN_I64);
  if (tn_status s = need_dtype(d, "iota", dtype, kNumbers); s != TN_OK) return s;
  Dims result;
  int64_t axis = 0;
  if (tn_status s = read_dims(d, "iota", op, &result); s != TN_OK) return s;
  if (tn_status s = read_axis(d, "iota", op, 0, static_cast<int64_t>(result.size()), &axis); s != TN_OK) return s;
  set_type(out, static_cast<uint32_t>(dtype), result, dims);
  return TN_OK;
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& y = e.self().type[0];
  const int64_t axis = normalise_axis(attr_i64(e.self(), TN_KEY_AXIS, 0), y.rank);
  ProgramBuilder p(y.dtype);
  p.output(p.index(static_cast<uint32_t>(axis), TN_I64), y.dtype);
  e.result(0, pointwise(e, p, {}, dims_of(y)));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  struct Row { Dims dims; int64_t axis; };
  const Row rows[] = {{{5}, 0}, {{0}, 0}, {{70}, -1}, {{2, 3}, 0}, {{2, 3}, 1}, {{2, 3, 4}, -2}, {{3, 0, 2}, 0}};
  for (uint32_t dtype : {TN_F32, TN_I64, TN_I32})
    for (const Row& row : rows) {
      Case c{{}, {case_ints(TN_KEY_DIMS, row.dims), case_i64(TN_KEY_AXIS, row.axis), case_i64(TN_KEY_DTYPE, dtype)}};
      c.differentiable = false;
      all.push_back(c);
    }
  return all;
}

}  // namespace

extern const OpDecl op_iota{
    .def = {.size = sizeof(tn_op_def), .op_id = TN_OPID_IOTA, .version = 1, .n_in = 0, .n_out = 1, .n_attr_defs = std::size(kAttrs),
            .name = "iota", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp_zero, .cost = cost_move},
    .summary = "The index along one axis.",
    .formula = "y[i] = i[axis]",
    .semantics = "Counted in i64, then cast to dtype: large indices round in floats and wrap in narrow integers.",
    .example = "dims=2,3 axis=1 dtype=i64",
    .cases = cases,
    .dtypes = mask(TN_F32),
    .ulp_f32 = 0};

}  // namespace tenon::ops
