// ops/reduction/mean.cpp - the mean over axes.
#include "ops/reduction/reduction.h"

namespace tenon::ops {
namespace {

constexpr uint64_t kUnsigned = mask(TN_U8) | mask(TN_U16) | mask(TN_U32) | mask(TN_U64);
constexpr Reduction kRule{"mean", kNumbers, 0};

// The sum is divided once, in the accumulator's type: 64 bits for integers, so that it does not wrap on the way.
tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& x = e.self().type[0];
  ReduceNode node{TN_MONOID_SUM, resolved_axes(e.self()), keepdims_of(e.self())};
  const int64_t count = reduced_count(e, x, node.axes);
  const bool is_unsigned = (kUnsigned >> x.dtype & 1) != 0;
  const uint32_t integer = is_unsigned ? uint32_t{TN_U64} : uint32_t{TN_I64};
  const uint32_t wide = is_float(x.dtype) ? compute_type(x.dtype) : integer;
  ProgramBuilder pre(x.dtype), post(x.dtype);
  pre.output(pre.input(0), wide);
  post.output(post.op(TN_OP_DIV, post.input(0, wide), post.constant(static_cast<double>(count), wide)));
  if (!is_float(x.dtype) && x.dtype != wide) node.pre = pre.finish();
  node.post = post.finish();
  node.push = post.literals();
  e.result(0, emit_reduce(e, {e.in(0)}, node));
  return e.status();
}

tn_status infer(void* rule, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* diag) {
  const tn_status s = reduction_infer(rule, op, dims, out, diag);
  if (s != TN_OK || is_float(op->type[0].dtype)) return s;
  for (int64_t axis : resolved_axes(*op))
    if (op->type[0].dim[axis] == 0)
      return fail(diag, TN_E_SHAPE, error_id(kShape, 21), "mean: no elements\nwhy: axis %lld of %s is empty, and integers have no NaN\n"
                  "try: cast to a float, or leave out empty operands", static_cast<long long>(axis), type_text(op->type[0]).c_str());
  return TN_OK;
}

// Empty reductions are errors for integers, so they are tried with floats only, by the special-value tests.
std::vector<Case> cases() { return reduction_cases(Fill::Normal, false); }

constexpr tn_op_def def() {
  tn_op_def d = reduction_def(TN_OPID_MEAN, &kRule, expand);
  d.infer = infer;
  return d;
}

}  // namespace

extern const OpDecl op_mean{
    .def = def(),
    .summary = "The mean over axes.",
    .formula = "y = sum of x / count",
    .semantics = "Keeps the element type: f16 and bf16 accumulate in f32; integers are summed in 64 bits "
                 "and divided toward zero. No elements: NaN, for integers an error. Attribute axes: absent "
                 "= all, an empty list = none; negative axes count from the end.",
    .example = "mean f32[2,3] --axes 1",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
