// ops/primitive/reduce.cpp - a program before, a monoid over axes, a program after.
#include "ops/primitive/reduce.h"

#include <algorithm>

#include "ops/cases.h"
#include "ops/declare.h"
#include "ops/program_rules.h"

namespace tenon::ops {

bool is_arg(int64_t monoid) { return monoid == TN_MONOID_ARGMAX || monoid == TN_MONOID_ARGMIN; }

ReduceParts reduce_parts(const tn_op& op) {
  ReduceParts r{};
  r.monoid = attr_i64(op, TN_KEY_MONOID, 0);
  r.axes = attr_ints(op, TN_KEY_AXES);
  r.keepdims = attr_i64(op, TN_KEY_KEEPDIMS, 0) != 0;
  r.pre = attr_program(op, TN_KEY_PRE);
  r.post = attr_program(op, TN_KEY_POST);
  r.element = r.pre ? output_type(*r.pre, 0) : op.type[0].dtype;
  r.accumulator = compute_type(r.element);
  return r;
}

namespace {

tn_status check_monoid(const ReduceParts& r, tn_diag* diag) {
  if (r.monoid < TN_MONOID_SUM || r.monoid > TN_MONOID_ARGMIN)
    return fail(diag, TN_E_ARG, error_id(kArg, 4), "reduce: unknown monoid\nwhy: attribute monoid is %lld\n"
                "try: use one of TN_MONOID_*", static_cast<long long>(r.monoid));
  const bool bits = r.monoid == TN_MONOID_AND || r.monoid == TN_MONOID_OR;
  const uint64_t takes = bits ? kInts | mask(TN_BOOL) : kNumbers;
  if ((takes >> r.element & 1) == 0)
    return fail(diag, TN_E_DTYPE, error_id(kDtype, 5), "reduce: the monoid is not defined for the element type\n"
                "why: monoid %lld over %s\ntry: cast before, or use another monoid", static_cast<long long>(r.monoid),
                dtype_name(r.element));
  return TN_OK;
}

tn_status check_programs(const ReduceParts& r, const tn_op* op, tn_diag* diag) {
  if (r.pre) {
    const tn_status s = check_inputs("reduce", *r.pre, op, diag);
    if (s != TN_OK) return s;
  }
  if (r.pre ? r.pre->n_out != 1 : op->n_in != 1)
    return fail(diag, TN_E_ARG, error_id(kArg, 5), "reduce: one value per element is needed\nwhy: pre has %u outputs, there are "
                "%u operands\ntry: give a pre with one output", r.pre ? r.pre->n_out : 1, op->n_in);
  if (!r.post) return TN_OK;
  if (is_arg(r.monoid) || r.post->n_in > 1)
    return fail(diag, TN_E_ARG, error_id(kArg, 6), "reduce: post does not fit\nwhy: it reads %u inputs, monoid is %lld; it may "
                "read the accumulated value alone, and an index has no post\ntry: put the rest in a pointwise", r.post->n_in,
                static_cast<long long>(r.monoid));
  for (uint32_t i = 0; i < r.post->n_inst; ++i)
    if (r.post->inst[i].op == TN_OP_INPUT && r.post->inst[i].type != r.accumulator)
      return fail(diag, TN_E_DTYPE, error_id(kDtype, 2), "reduce: post reads another type than is accumulated\nwhy: it reads "
                  "%s, the accumulator is %s\ntry: read %s and cast", dtype_name(r.post->inst[i].type),
                  dtype_name(r.accumulator), dtype_name(r.accumulator));
  return TN_OK;
}

tn_status check_axes(const ReduceParts& r, const tn_type& full, tn_diag* diag) {
  for (size_t i = 0; i < r.axes.size(); ++i) {
    if (r.axes[i] < 0 || r.axes[i] >= full.rank)
      return fail(diag, TN_E_SHAPE, error_id(kShape, 5), "reduce: axis out of range\nwhy: axes[%zu] is %lld, the operand is %s\n"
                  "try: give axes from 0 to rank - 1", i, static_cast<long long>(r.axes[i]), type_text(full).c_str());
    if (i && r.axes[i] <= r.axes[i - 1])
      return fail(diag, TN_E_SHAPE, error_id(kShape, 6), "reduce: axes are not in order, or one is named twice\nwhy: axes[%zu] is "
                  "%lld after %lld\ntry: sort them and name each once", i, static_cast<long long>(r.axes[i]),
                  static_cast<long long>(r.axes[i - 1]));
  }
  if (!is_arg(r.monoid)) return TN_OK;
  if (r.axes.size() != 1)
    return fail(diag, TN_E_SHAPE, error_id(kShape, 9), "reduce: an index needs one axis\nwhy: %zu axes are given\n"
                "try: reshape so that the elements lie on one axis", r.axes.size());
  if (full.dim[r.axes[0]] == 0)
    return fail(diag, TN_E_SHAPE, error_id(kShape, 10), "reduce: no element to point at\nwhy: axis %lld of %s is empty\n"
                "try: leave out empty operands", static_cast<long long>(r.axes[0]), type_text(full).c_str());
  return TN_OK;
}

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* diag) {
  if (op->n_in == 0)
    return fail(diag, TN_E_ARG, error_id(kArg, 5), "reduce: no operand\nwhy: there is nothing to reduce\ntry: give one");
  const ReduceParts r = reduce_parts(*op);
  tn_type full{};
  tn_status s = check_programs(r, op, diag);
  if (s == TN_OK) s = check_monoid(r, diag);
  if (s == TN_OK) s = broadcast(op, dims, &full, diag);
  full.dtype = static_cast<uint8_t>(r.element);
  if (s == TN_OK) s = check_axes(r, full, diag);
  if (s != TN_OK) return s;
  tn_type t{};
  for (uint32_t i = 0; i < full.rank; ++i) {
    const bool reduced = std::find(r.axes.begin(), r.axes.end(), i) != r.axes.end();
    if (!reduced || r.keepdims) t.dim[t.rank++] = reduced ? 1 : full.dim[i];
  }
  set_dense(&t, dims);
  for (uint32_t k = 0; k < (r.post ? r.post->n_out : 1u); ++k) {
    out[k] = t;
    out[k].dtype = static_cast<uint8_t>(is_arg(r.monoid) ? uint32_t{TN_I64} : r.post ? output_type(*r.post, k) : r.element);
  }
  return TN_OK;
}

tn_status cost(void*, const tn_op* op, tn_cost* out, tn_diag*) {
  const ReduceParts r = reduce_parts(*op);
  double elements = 1;
  for (uint32_t i = 0; i < op->n_in; ++i) elements = std::max(elements, element_count(op->type[i]));
  out->bound = TN_BOUND_MEMORY;
  out->flops = elements * (1 + (r.pre ? arithmetic_count(*r.pre) : 0));
  out->bytes = traffic(*op);
  return TN_OK;
}

void square(ProgramBuilder& p) { p.output(p.op(TN_OP_MUL, p.input(0), p.input(0)), p.compute()); }

// The accumulator halved, in the element type.
void half(ProgramBuilder& p) {
  p.output(p.op(TN_OP_DIV, p.input(0, p.compute()), p.op(TN_OP_ADD, p.slot(0), p.slot(0))));
}

// The primitive takes resolved axes only: those cases of the named reductions that have them.
void add_resolved(std::vector<Case>* list, int64_t monoid, bool programs) {
  for (Case c : reduction_cases(monoid >= TN_MONOID_MAX ? Fill::Spaced : Fill::Positive, true)) {
    const int64_t rank = static_cast<int64_t>(c.in[0].dims.size());
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
    std::erase_if(c.attrs, [&](const CaseAttr& a) {
      if (a.key != TN_KEY_AXES) return false;
      axes = a.list;
      return true;
    });
    for (int64_t& a : axes) a = normalise_axis(a, rank);
    std::sort(axes.begin(), axes.end());
    c.attrs.push_back(case_ints(TN_KEY_AXES, axes));
    c.attrs.push_back(case_i64(TN_KEY_MONOID, monoid));
    if (programs) {
      c.attrs.push_back(case_program(TN_KEY_PRE, square));
      c.attrs.push_back(case_program(TN_KEY_POST, half));
      c.push = {1};
    }
    list->push_back(c);
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const int64_t monoid : {TN_MONOID_SUM, TN_MONOID_PROD, TN_MONOID_MAX, TN_MONOID_MIN}) {
    add_resolved(&list, monoid, false);
    add_resolved(&list, monoid, true);
  }
  for (const int64_t monoid : {TN_MONOID_ARGMAX, TN_MONOID_ARGMIN})
    for (Case c : arg_cases()) {
      int64_t axis = -1;
      std::erase_if(c.attrs, [&](const CaseAttr& a) { return a.key == TN_KEY_AXIS && ((axis = a.i), true); });
      c.attrs.push_back(case_ints(TN_KEY_AXES, {normalise_axis(axis, static_cast<int64_t>(c.in[0].dims.size()))}));
      c.attrs.push_back(case_i64(TN_KEY_MONOID, monoid));
      list.push_back(c);
    }
  return list;
}

const tn_attr_def kAttrs[] = {attr_def(TN_KEY_PRE, TN_ATTR_PROGRAM, "pre"), attr_def(TN_KEY_POST, TN_ATTR_PROGRAM, "post"),
                              attr_def(TN_KEY_AXES, TN_ATTR_I64S, "axes", TN_ATTR_REQUIRED),
                              attr_def_i64(TN_KEY_KEEPDIMS, "keepdims", 0),
                              attr_def(TN_KEY_MONOID, TN_ATTR_I64, "monoid", TN_ATTR_REQUIRED)};

}  // namespace

extern const OpDecl op_reduce{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_WIDE, .op_id = TN_OPID_REDUCE, .version = 1, .n_in = TN_VARIADIC,
            .n_out = TN_VARIADIC, .n_attr_defs = 5, .name = "reduce", .attr_defs = kAttrs, .infer = infer, .vjp = reduce_vjp,
            .cost = cost},
    .summary = "A monoid over axes, with a scalar program before and one after.",
    .formula = "y_k = post_k(accumulate over axes of pre(x_0, x_1, ...))",
    .semantics = "The accumulator has the compute type of what pre gives. Without post the output has the type that pre gives. "
                 "Empty axes give the identity: sum 0, prod 1, max lowest (-Inf), min highest (+Inf), and 1, or 0; an index of an "
                 "empty axis is an error. max and min: a NaN wins, ties share the gradient evenly. The gradient of prod is exact "
                 "with zeros; its own derivative is exact where there are none.",
    .example = "f32[4,8] axes=1 monoid=1",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
