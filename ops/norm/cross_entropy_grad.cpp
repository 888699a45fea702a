// Gradient of cross_entropy with respect to its logits.
#include "ops/norm/norm_tools.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_i64(TN_KEY_IGNORE_INDEX, "ignore_index", -100)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const tn_type &x = op->type[0], &target = op->type[1], &dloss = op->type[2];
  const Calc calc{dims};
  if (tn_status s = need_float(d, "cross_entropy_grad", "logits", x); s != TN_OK) return s;
  if (tn_status s = need_index(d, "cross_entropy_grad", "target", target); s != TN_OK) return s;
  if (tn_status s = need_same_dtype(d, "cross_entropy_grad", "dloss", dloss, x); s != TN_OK) return s;
  if (tn_status s = need_rank(d, "cross_entropy_grad", "logits", x, 2, 2); s != TN_OK) return s;
  if (tn_status s = need_dims(d, "cross_entropy_grad", "target", target, {x.dim[0]}, calc); s != TN_OK) return s;
  if (tn_status s = need_dims(d, "cross_entropy_grad", "dloss", dloss, {x.dim[0]}, calc); s != TN_OK) return s;
  set_type(out, x.dtype, dims_of(x), dims);
  return TN_OK;
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& x = e.self().type[0];
  const uint32_t kind = e.self().type[1].dtype;
  const Dims column{x.dim[0], 1};
  const Value soft = e.op(TN_OPID_SOFTMAX, {widen(e, e.in(0))}, {Attr::i64(TN_KEY_AXIS, 1)});
  ProgramBuilder p(x.dtype);
  const auto target = p.input(1, kind), zero = p.constant(0);
  const auto one = p.op(TN_OP_SELECT, p.op(TN_OP_EQ, p.index(1, kind), target), p.constant(1), zero);
  const auto grad = p.op(TN_OP_MUL, p.op(TN_OP_SUB, p.input(0, p.compute()), one), p.input(2));
  const auto ignored = p.op(TN_OP_EQ, target, p.constant(static_cast<double>(attr_i64(e.self(), TN_KEY_IGNORE_INDEX, -100)), kind));
  p.output(p.op(TN_OP_SELECT, ignored, zero, grad));
  const Value in[] = {soft, reshape(e, e.in(1), column), reshape(e, e.in(2), column)};
  e.result(0, pointwise(e, p, in));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Dims& dims : {Dims{1, 1}, Dims{1, 2}, Dims{4, 10}, Dims{0, 3}, Dims{7, 63}, Dims{7, 64}, Dims{7, 65}, Dims{70, 3}, Dims{3, 129}, Dims{16, 5}})
    for (uint32_t index : {TN_I32, TN_I64}) all.push_back({{operand(dims), index_operand({dims[0]}, dims[1], index), operand({dims[0]})}});
  all.push_back({{operand({9, 4}), index_operand({9}, 4), operand({9})}, {case_i64(TN_KEY_IGNORE_INDEX, 2)}});
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast})
    all.push_back({{operand({6, 5}, Fill::Normal, layout), index_operand({6}, 5), operand({6})}});
  return all;
}

}  // namespace

// No vjp of its own: the parts of the expansion have theirs, which gives second derivatives.
extern const OpDecl op_cross_entropy_grad{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_WIDE, .op_id = TN_OPID_CROSS_ENTROPY_GRAD, .version = 1, .n_in = 3, .n_out = 1,
            .n_attr_defs = std::size(kAttrs), .name = "cross_entropy_grad", .attr_defs = kAttrs, .infer = infer, .expand = expand,
            .cost = cost_elements<8>},
    .summary = "Gradient of cross_entropy with respect to its logits.",
    .formula = "dlogits[i, k] = (softmax(logits[i])[k] - (k == target[i])) * dloss[i]",
    .semantics = "A row whose target equals ignore_index gets zeros, even where its logits are NaN.",
    .example = "f32[4,10] i64[4] f32[4]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 16};

}  // namespace tenon::ops
