// Another element type, by the rules of TN_OP_CAST.
#include "ops/movement/rule_tools.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_required(TN_KEY_DTYPE, TN_ATTR_I64, "dtype")};
constexpr uint64_t kCastable = kAllTypes | mask(TN_F8E4M3) | mask(TN_F8E5M2) | mask(TN_U4) | mask(TN_I4);

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const int64_t dtype = attr_i64(*op, TN_KEY_DTYPE, 0);
  if (tn_status s = need_dtype(d, "cast", dtype, kCastable); s != TN_OK) return s;
  if (tn_status s = need_dtype(d, "cast", op->type[0].dtype, kCastable); s != TN_OK) return s;
  set_type(out, static_cast<uint32_t>(dtype), dims_of(op->type[0]), dims, &op->type[0]);
  return TN_OK;
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  ProgramBuilder p(e.self().type[0].dtype);
  p.output(p.input(0), static_cast<uint32_t>(attr_i64(e.self(), TN_KEY_DTYPE, 0)));
  const Value in[] = {e.in(0)};
  e.result(0, pointwise(e, p, in));
  return e.status();
}

tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const uint32_t from = e.self().type[0].dtype, to = static_cast<uint32_t>(attr_i64(e.self(), TN_KEY_DTYPE, 0));
  if (is_float(from) && is_float(to)) e.result(0, cast_to(e, e.seed(0), from));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (uint32_t to : {TN_F32, TN_F64, TN_F16, TN_BF16, TN_I32, TN_I64, TN_U8, TN_I8, TN_BOOL})
    for (const Dims& dims : {Dims{70}, Dims{3, 4, 5}}) {
      Case c{{operand(dims, Fill::Spaced)}, {case_i64(TN_KEY_DTYPE, to)}};
      c.differentiable = to == TN_F64;  // rounding to fewer bits is a staircase to a finite difference
      all.push_back(c);
    }
  for (const Dims& dims : {Dims{}, Dims{0}, Dims{1}, Dims{2, 0, 3}}) all.push_back({{operand(dims)}, {case_i64(TN_KEY_DTYPE, TN_F64)}});
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast})
    all.push_back({{operand({5, 7}, Fill::Normal, layout)}, {case_i64(TN_KEY_DTYPE, TN_F64)}});
  return all;
}

}  // namespace

extern const OpDecl op_cast{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_ELEMENTWISE, .op_id = TN_OPID_CAST, .version = 1, .n_in = 1, .n_out = 1,
            .n_attr_defs = std::size(kAttrs), .name = "cast", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp,
            .cost = cost_elements<1>},
    .summary = "The same numbers in another element type.",
    .formula = "y[i] = dtype(x[i])",
    .semantics = "Float to float rounds to nearest even; f8e4m3 saturates. Float to integer rounds toward 0, saturates, NaN gives 0. "
                 "Integer to integer wraps. To bool: x != 0, NaN is true. No derivative through integers or bool.",
    .example = "f32[2,3] dtype=f16",
    .cases = cases,
    .dtypes = kAllTypes,
    .ulp_f32 = 0.5};

}  // namespace tenon::ops
