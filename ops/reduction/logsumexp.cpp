// ops/reduction/logsumexp.cpp - the logarithm of the sum of exponentials over axes.
#include <limits>

#include "ops/pull.h"
#include "ops/reduction/reduction.h"

namespace tenon::ops {
namespace {

constexpr Reduction kRule{"logsumexp", kFloats, 0};

using Id = ProgramBuilder::Id;

// The row's maximum where it is finite, else 0: infinities then come out of exp and log by themselves.
Id shift_of(ProgramBuilder& p, Id top) {
  const Id finite = p.op(TN_OP_LT, p.op(TN_OP_ABS, top), p.constant(std::numeric_limits<double>::infinity()));
  return p.op(TN_OP_SELECT, finite, top, p.constant(0));
}

// In the compute type, axes kept.
Value wide_result(Emit& e, const std::vector<int64_t>& axes) {
  const uint32_t dtype = e.self().type[0].dtype, wide = compute_type(dtype);
  const Value top = emit_reduce(e, {e.in(0)}, {TN_MONOID_MAX, axes, true});
  ProgramBuilder pre(wide), post(wide), add(wide);
  pre.output(pre.op(TN_OP_EXP, pre.op(TN_OP_SUB, pre.input(0, dtype), shift_of(pre, pre.input(1, dtype)))));
  // post has no constants, so that the slots of pre are all there are.
  post.output(post.op(TN_OP_LOG, post.input(0)));
  const Value log_sum = emit_reduce(e, {e.in(0), top}, {TN_MONOID_SUM, axes, true, pre.finish(), post.finish(), pre.literals()});
  add.output(add.op(TN_OP_ADD, add.input(0), shift_of(add, add.input(1, dtype))));
  const Attr program = Attr::program(TN_KEY_PROGRAM, add.finish());
  const Value in[] = {log_sum, top};
  return e.ops(TN_OPID_POINTWISE, in, {&program, 1}, add.literals(), 1)[0];
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type &x = e.self().type[0], &y = e.self().type[1];
  Value v = wide_result(e, resolved_axes(e.self()));
  if (x.dtype != compute_type(x.dtype)) v = e.op(TN_OPID_CAST, {v}, {Attr::i64(TN_KEY_DTYPE, x.dtype)});
  e.result(0, with_dims(e, v, {y.dim, y.dim + y.rank}));
  return e.status();
}

// s exp(x - y): the softmax of the row. y is computed again when it was stored in fewer bits than exp needs.
tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  if (!e.seed(0)) return e.status();
  const tn_type& x = e.self().type[0];
  const uint32_t wide = compute_type(x.dtype);
  const std::vector<int64_t> axes = resolved_axes(e.self()), kept = kept_dims(x, axes);
  const Value y = x.dtype == wide ? with_dims(e, e.out(0), kept) : wide_result(e, axes);
  ProgramBuilder p(x.dtype);
  const Id top = p.input(1, wide), lowest = p.constant(-std::numeric_limits<double>::infinity());
  // A row of -Inf has weights 0, not NaN.
  const Id safe = p.op(TN_OP_SELECT, p.op(TN_OP_EQ, top, lowest), p.constant(0), top);
  p.output(p.op(TN_OP_MUL, p.input(2), p.op(TN_OP_EXP, p.op(TN_OP_SUB, p.input(0), safe))));
  const Attr program = Attr::program(TN_KEY_PROGRAM, p.finish());
  const Value in[] = {e.in(0), y, with_dims(e, e.seed(0), kept)};
  e.result(0, e.ops(TN_OPID_POINTWISE, in, {&program, 1}, p.literals(), 1)[0]);
  return e.status();
}

std::vector<Case> cases() { return reduction_cases(Fill::Normal, true); }

}  // namespace

extern const OpDecl op_logsumexp{
    .def = reduction_def(TN_OPID_LOGSUMEXP, &kRule, expand, vjp),
    .summary = "The logarithm of the sum of exponentials over axes.",
    .formula = "y = log(sum of e^x)",
    .semantics = "Stable: the row's maximum is taken out first. A row of -Inf, or no elements: -Inf. A +Inf "
                 "gives +Inf. A NaN gives NaN. The gradient of a row of -Inf is 0. Attribute axes: absent = "
                 "all, an empty list = none; negative axes count from the end.",
    .example = "logsumexp f32[2,3] --axes 1",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 16};

}  // namespace tenon::ops
