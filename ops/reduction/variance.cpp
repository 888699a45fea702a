// ops/reduction/variance.cpp - the population variance over axes.
#include "ops/pull.h"
#include "ops/reduction/reduction.h"

namespace tenon::ops {
namespace {

constexpr Reduction kRule{"variance", kFloats, 0};

using Id = ProgramBuilder::Id;

// In the compute type, axes kept.
Value wide_mean(Emit& e, const std::vector<int64_t>& axes, int64_t count) {
  const uint32_t wide = compute_type(e.self().type[0].dtype);
  ProgramBuilder post(wide);
  post.output(post.op(TN_OP_DIV, post.input(0), post.constant(static_cast<double>(count))));
  return emit_reduce(e, {e.in(0)}, {TN_MONOID_SUM, axes, true, nullptr, post.finish(), post.literals()});
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& x = e.self().type[0];
  const uint32_t wide = compute_type(x.dtype);
  const std::vector<int64_t> axes = resolved_axes(e.self());
  const int64_t count = reduced_count(e, x, axes);
  const Value mean = wide_mean(e, axes, count);
  ProgramBuilder pre(wide), post(x.dtype);
  const Id away = pre.op(TN_OP_SUB, pre.input(0, x.dtype), pre.input(1));
  pre.output(pre.op(TN_OP_MUL, away, away));
  // pre has no constants, so that the slots of post are all there are.
  post.output(post.op(TN_OP_DIV, post.input(0, wide), post.constant(static_cast<double>(count))));
  e.result(0, emit_reduce(e, {e.in(0), mean}, {TN_MONOID_SUM, axes, keepdims_of(e.self()), pre.finish(), post.finish(), post.literals()}));
  return e.status();
}

// s 2 (x - mean) / count: the mean's own share sums to 0.
tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  if (!e.seed(0)) return e.status();
  const tn_type& x = e.self().type[0];
  const std::vector<int64_t> axes = resolved_axes(e.self());
  const int64_t count = reduced_count(e, x, axes);
  ProgramBuilder p(x.dtype);
  const Id away = p.op(TN_OP_SUB, p.input(0), p.input(1, p.compute()));
  p.output(p.op(TN_OP_MUL, p.op(TN_OP_MUL, p.input(2), p.constant(2.0 / static_cast<double>(count))), away));
  const Attr program = Attr::program(TN_KEY_PROGRAM, p.finish());
  const Value in[] = {e.in(0), wide_mean(e, axes, count), with_dims(e, e.seed(0), kept_dims(x, axes))};
  e.result(0, e.ops(TN_OPID_POINTWISE, in, {&program, 1}, p.literals(), 1)[0]);
  return e.status();
}

std::vector<Case> cases() { return reduction_cases(Fill::Normal, true); }

}  // namespace

extern const OpDecl op_variance{
    .def = reduction_def(TN_OPID_VARIANCE, &kRule, expand, vjp),
    .summary = "The population variance over axes.",
    .formula = "y = sum of (x - mean)^2 / count",
    .semantics = "Two passes: no cancellation for a large mean. One element: 0. No elements: NaN. An "
                 "infinity gives NaN. Attribute axes: absent = all, an empty list = none; negative axes "
                 "count from the end.",
    .example = "variance f32[2,3] --axes 1",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 16};

}  // namespace tenon::ops
