// An array of one value.
#include "ops/movement/rule_tools.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_required(TN_KEY_DIMS, TN_ATTR_I64S, "dims"), def_i64(TN_KEY_DTYPE, "dtype", TN_F32)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const int64_t dtype = attr_i64(*op, TN_KEY_DTYPE, TN_F32);
  if (tn_status s = need_dtype(d, "full", dtype, kAllTypes); s != TN_OK) return s;
  Dims result;
  if (tn_status s = read_dims(d, "full", op, &result); s != TN_OK) return s;
  set_type(out, static_cast<uint32_t>(dtype), result, dims);
  return TN_OK;
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  ProgramBuilder p(e.self().type[0].dtype);
  p.reserve_slots(1);
  p.output(p.slot(0));
  e.result(0, pointwise(e, p, {}, dims_of(e.self().type[0])));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (uint32_t dtype : {TN_F32, TN_F64, TN_F16, TN_BF16, TN_I32, TN_I64, TN_U8})
    for (const Dims& dims : {Dims{}, Dims{0}, Dims{70}, Dims{2, 3, 4}}) {
      Case c{{}, {case_ints(TN_KEY_DIMS, dims), case_i64(TN_KEY_DTYPE, dtype)}, {3}};
      c.differentiable = false;
      all.push_back(c);
    }
  return all;
}

}  // namespace

extern const OpDecl op_full{
    .def = {.size = sizeof(tn_op_def), .op_id = TN_OPID_FULL, .version = 1, .n_in = 0, .n_out = 1, .n_attr_defs = std::size(kAttrs),
            .name = "full", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp_zero, .cost = cost_move},
    .summary = "An array of one value.",
    .formula = "y[i] = value",
    .semantics = "The value comes in push slot 0 in the compute type of dtype and is rounded to dtype once.",
    .example = "dims=2,3 dtype=f32",
    .cases = cases,
    .dtypes = mask(TN_F32),
    .ulp_f32 = 0};

}  // namespace tenon::ops
