// Loss of each row of logits against a class number.
#include "ops/norm/norm_tools.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_i64(TN_KEY_IGNORE_INDEX, "ignore_index", -100)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const tn_type &x = op->type[0], &target = op->type[1];
  if (tn_status s = need_float(d, "cross_entropy", "logits", x); s != TN_OK) return s;
  if (tn_status s = need_index(d, "cross_entropy", "target", target); s != TN_OK) return s;
  if (x.rank != 2 || target.rank != 1 || !Calc{dims}.equal(x.dim[0], target.dim[0]) || x.dim[1] == 0)
    return fail(d, TN_E_SHAPE, error_id(kShape, 63), "cross_entropy: logits and target do not fit\nwhy: logits is %s, target is %s; logits must be [n, c] with c >= 1, target [n]\ntry: reshape logits to [n, c] and target to [n]",
                type_text(x).c_str(), type_text(target).c_str());
  set_type(out, x.dtype, {x.dim[0]}, dims);
  return TN_OK;
}

// Ignored rows read class 0; a class below 0 must not count from the end, so it is sent outside, where gather fails.
Value safe_target(Emit& e, Value target, const tn_type& logits, int64_t ignore) {
  const uint32_t dtype = e.type(target).dtype;
  if (!e.ok()) return target;
  ProgramBuilder p(dtype);
  const auto t = p.input(0), zero = p.constant(0);
  const auto checked = p.op(TN_OP_SELECT, p.op(TN_OP_LT, t, zero), p.constant(static_cast<double>(logits.dim[1])), t);
  p.output(p.op(TN_OP_SELECT, p.op(TN_OP_EQ, t, p.constant(static_cast<double>(ignore))), zero, checked));
  const Value in[] = {target};
  return pointwise(e, p, in);
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& x = e.self().type[0];
  const int64_t n = x.dim[0], ignore = attr_i64(e.self(), TN_KEY_IGNORE_INDEX, -100);
  const Value index = reshape(e, safe_target(e, e.in(1), x, ignore), {n, 1});
  const Value logs = e.op(TN_OPID_LOG_SOFTMAX, {widen(e, e.in(0))}, {Attr::i64(TN_KEY_AXIS, 1)});
  const Value picked = reshape(e, e.op(TN_OPID_GATHER, {logs, index}, {Attr::i64(TN_KEY_AXIS, 1)}), {n});
  ProgramBuilder p(x.dtype);
  const uint32_t kind = e.self().type[1].dtype;
  const auto ignored = p.op(TN_OP_EQ, p.input(1, kind), p.constant(static_cast<double>(ignore), kind));
  p.output(p.op(TN_OP_SELECT, ignored, p.constant(0), p.op(TN_OP_NEG, p.input(0, p.compute()))));
  const Value in[] = {picked, e.in(1)};
  e.result(0, pointwise(e, p, in));
  return e.status();
}

tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  if (e.seed(0) && e.needs(0)) e.result(0, e.same_attrs(TN_OPID_CROSS_ENTROPY_GRAD, {e.in(0), e.in(1), e.seed(0)}));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Dims& dims : {Dims{1, 1}, Dims{1, 2}, Dims{4, 10}, Dims{0, 3}, Dims{7, 63}, Dims{7, 64}, Dims{7, 65}, Dims{70, 3}, Dims{3, 129},
                           Dims{16, 5}, Dims{2, 1}})
    for (uint32_t index : {TN_I32, TN_I64}) all.push_back({{operand(dims), index_operand({dims[0]}, dims[1], index)}});
  all.push_back({{operand({9, 4}), index_operand({9}, 4)}, {case_i64(TN_KEY_IGNORE_INDEX, 2)}});
  all.push_back({{operand({9, 4}), index_operand({9}, 1)}, {case_i64(TN_KEY_IGNORE_INDEX, 0)}});  // every row ignored
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast})
    all.push_back({{operand({6, 5}, Fill::Normal, layout), index_operand({6}, 5)}});
  return all;
}

}  // namespace

extern const OpDecl op_cross_entropy{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_WIDE, .op_id = TN_OPID_CROSS_ENTROPY, .version = 1, .n_in = 2, .n_out = 1,
            .n_attr_defs = std::size(kAttrs), .name = "cross_entropy", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp,
            .cost = cost_elements<8>},
    .summary = "Loss of each row of logits against its class number.",
    .formula = "loss[i] = -log_softmax(logits[i])[target[i]]",
    .semantics = "A target equal to ignore_index gives 0 and no gradient, even where its logits are NaN. Any other target outside 0..c-1 makes the "
                 "result fail with TN_E_FAILED. No mean is taken: rows keep their losses.",
    .example = "f32[4,10] i64[4]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 16};

}  // namespace tenon::ops
