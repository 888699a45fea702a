// A row of zeros with a one at each index.
#include "ops/movement/rule_tools.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_i64(TN_KEY_DTYPE, "dtype", TN_F32), def_required(TN_KEY_DEPTH, TN_ATTR_I64, "depth")};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const tn_type& index = op->type[0];
  const int64_t depth = attr_i64(*op, TN_KEY_DEPTH, 0), dtype = attr_i64(*op, TN_KEY_DTYPE, TN_F32);
  if (tn_status s = need_index(d, "one_hot", "index", index); s != TN_OK) return s;
  if (tn_status s = need_rank(d, "one_hot", "index", index, 0, TN_MAX_RANK - 1); s != TN_OK) return s;
  if (tn_status s = need_dtype(d, "one_hot", dtype, kAllTypes); s != TN_OK) return s;
  if (depth < 0 && !TN_IS_SYM(depth))
    return fail(d, TN_E_ARG, error_id(kShape, 66), "one_hot: attribute depth is too small\nwhy: depth is %lld, the least is 0\ntry: give the number of classes", static_cast<long long>(depth));
  Dims result = dims_of(index);
  result.push_back(depth);
  set_type(out, static_cast<uint32_t>(dtype), result, dims);
  return TN_OK;
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type &index = e.self().type[0], &y = e.self().type[1];
  Dims column = dims_of(index);
  column.push_back(1);
  ProgramBuilder p(index.dtype);
  const auto hit = p.op(TN_OP_EQ, p.input(0), p.index(index.rank, index.dtype));
  p.output(hit, y.dtype);
  const Value in[] = {expand_to(e, reshape(e, e.in(0), column), dims_of(y))};
  e.result(0, pointwise(e, p, in));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Dims& dims : {Dims{}, Dims{1}, Dims{7}, Dims{0}, Dims{2, 3}, Dims{70}, Dims{3, 0}, Dims{2, 3, 4}})
    for (int64_t depth : {0, 1, 10})
      for (uint32_t index : {TN_I32, TN_I64}) {
        if (index == TN_I32 && dims.size() > 1) continue;
        Case c{{index_operand(dims, depth + 1, index)}, {case_i64(TN_KEY_DTYPE, TN_F32), case_i64(TN_KEY_DEPTH, depth)}};
        c.differentiable = false;
        all.push_back(c);
      }
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast}) {
    Case c{{index_operand({4, 3}, 6)}, {case_i64(TN_KEY_DTYPE, TN_F32), case_i64(TN_KEY_DEPTH, 5)}};
    c.in[0].layout = layout;
    c.differentiable = false;
    all.push_back(c);
  }
  return all;
}

}  // namespace

extern const OpDecl op_one_hot{
    .def = {.size = sizeof(tn_op_def), .op_id = TN_OPID_ONE_HOT, .version = 1, .n_in = 1, .n_out = 1, .n_attr_defs = std::size(kAttrs),
            .name = "one_hot", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp_zero, .cost = cost_move},
    .summary = "Indices as rows that hold one 1.",
    .formula = "y[..., k] = 1 where index[...] == k, else 0",
    .semantics = "An index outside 0..depth-1 (a negative one too) gives a row of zeros.",
    .example = "i64[4] depth=10",
    .cases = cases,
    .dtypes = mask(TN_I64),
    .ulp_f32 = 0};

}  // namespace tenon::ops
