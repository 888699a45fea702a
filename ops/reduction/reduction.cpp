// ops/reduction/reduction.cpp - see reduction.h.
#include "ops/reduction/reduction.h"

#include <algorithm>
#include <numeric>

#include "ops/program_rules.h"

namespace tenon::ops {

tn_status resolve_axes(const char* name, const tn_op& op, std::vector<int64_t>* axes, tn_diag* diag) {
  const int64_t rank = op.type[0].rank;
  axes->clear();
  if (!find_attr(op, TN_KEY_AXES)) {
    axes->resize(static_cast<size_t>(rank));
    std::iota(axes->begin(), axes->end(), 0);
    return TN_OK;
  }
  for (int64_t given : attr_ints(op, TN_KEY_AXES)) {
    const int64_t axis = normalise_axis(given, rank);
    if (axis < 0)
      return fail(diag, TN_E_SHAPE, error_id(kShape, 5), "%s: axis out of range\nwhy: axis %lld, the operand is %s\n"
                  "try: give axes from %lld to %lld", name, static_cast<long long>(given), type_text(op.type[0]).c_str(),
                  static_cast<long long>(-rank), static_cast<long long>(rank - 1));
    axes->push_back(axis);
  }
  std::sort(axes->begin(), axes->end());
  const auto twice = std::adjacent_find(axes->begin(), axes->end());
  if (twice == axes->end()) return TN_OK;
  return fail(diag, TN_E_SHAPE, error_id(kShape, 6), "%s: an axis is named twice\nwhy: axis %lld of %s\ntry: name each axis once",
              name, static_cast<long long>(*twice), type_text(op.type[0]).c_str());
}

std::vector<int64_t> resolved_axes(const tn_op& op) {
  std::vector<int64_t> axes;
  resolve_axes("", op, &axes, nullptr);
  return axes;
}

bool keepdims_of(const tn_op& op) { return attr_i64(op, TN_KEY_KEEPDIMS, 0) != 0; }

std::vector<int64_t> kept_dims(const tn_type& x, const std::vector<int64_t>& axes) {
  std::vector<int64_t> dims(x.dim, x.dim + x.rank);
  for (int64_t a : axes) dims[static_cast<size_t>(a)] = 1;
  return dims;
}

tn_status reduction_infer(void* rule_ptr, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* diag) {
  const Reduction& rule = *static_cast<const Reduction*>(rule_ptr);
  const tn_type& x = op->type[0];
  if ((rule.dtypes >> x.dtype & 1) == 0)
    return fail(diag, TN_E_DTYPE, error_id(kDtype, 3), "%s is not defined for %s\nwhy: operand 0 is %s\n"
                "try: cast it to a type that the op takes, e.g. f32", rule.name, dtype_name(x.dtype), type_text(x).c_str());
  std::vector<int64_t> axes;
  const tn_status s = resolve_axes(rule.name, *op, &axes, diag);
  if (s != TN_OK) return s;
  tn_type t{};
  t.dtype = static_cast<uint8_t>(rule.result ? rule.result : x.dtype);
  for (uint32_t i = 0; i < x.rank; ++i) {
    const bool reduced = std::binary_search(axes.begin(), axes.end(), int64_t{i});
    if (!reduced || keepdims_of(*op)) t.dim[t.rank++] = reduced ? 1 : x.dim[i];
  }
  set_dense(&t, dims);
  *out = t;
  return TN_OK;
}

tn_status reduction_cost(void*, const tn_op* op, tn_cost* out, tn_diag*) {
  out->bound = TN_BOUND_MEMORY;
  out->flops = element_count(op->type[0]);
  out->bytes = traffic(*op);
  return TN_OK;
}

int64_t reduced_count(Emit& e, const tn_type& x, const std::vector<int64_t>& axes) {
  int64_t n = 1;
  for (int64_t a : axes) n = e.arithmetic()->calc(e.arithmetic()->ctx, TN_DIM_MUL, n, x.dim[a]);
  if (TN_IS_SYM(n))
    e.fail(TN_E_UNSUPPORTED, error_id(kShape, 4), "a count of elements is not known yet\nwhy: the operand is %s\n"
           "try: expand this op with numbers for its symbols", type_text(x).c_str());
  return n;
}

Value emit_reduce(Emit& e, std::initializer_list<Value> in, const ReduceNode& node) {
  std::vector<Attr> attrs = {Attr::ints(TN_KEY_AXES, node.axes), Attr::i64(TN_KEY_KEEPDIMS, node.keepdims),
                             Attr::i64(TN_KEY_MONOID, node.monoid)};
  if (node.pre) attrs.push_back(Attr::program(TN_KEY_PRE, node.pre));
  if (node.post) attrs.push_back(Attr::program(TN_KEY_POST, node.post));
  return e.ops(TN_OPID_REDUCE, std::span(in.begin(), in.size()), attrs, node.push, 1)[0];
}

}  // namespace tenon::ops
