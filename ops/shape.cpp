// ops/shape.cpp - shape helpers of infer rules. Dims may be symbols, so all arithmetic goes through tn_dims.
#include <algorithm>
#include <optional>

#include "ops/emit.h"

namespace tenon::ops {
namespace {

int64_t times(const tn_dims* dims, int64_t a, int64_t b) { return dims->calc(dims->ctx, TN_DIM_MUL, a, b); }

bool has_zero(const tn_type& t) {
  return std::find(t.dim, t.dim + t.rank, 0) != t.dim + t.rank;
}

// Axes of size other than 1 from the innermost outward, when the strides are exactly those of a dense tensor whose axes
// were reordered. Works on symbols too: equal expressions are equal numbers.
std::optional<std::vector<uint32_t>> dense_order(const tn_type& t, const tn_dims* dims) {
  if (has_zero(t)) return std::nullopt;
  std::vector<uint32_t> left, order;
  for (uint32_t i = 0; i < t.rank; ++i)
    if (t.dim[i] != 1) left.push_back(i);
  int64_t expected = 1;
  while (!left.empty()) {
    const auto next = std::find_if(left.begin(), left.end(), [&](uint32_t i) { return t.stride[i] == expected; });
    if (next == left.end()) return std::nullopt;
    expected = times(dims, expected, t.dim[*next]);
    order.push_back(*next);
    left.erase(next);
  }
  return order;
}

}  // namespace

void set_dense(tn_type* t, const tn_dims* dims) {
  int64_t stride = 1;
  for (uint32_t i = t->rank; i-- > 0;) {
    t->stride[i] = stride;
    // A zero dim would make the outer strides 0; 1 keeps the strides of an empty tensor those of a dense one.
    if (t->dim[i] != 0) stride = times(dims, stride, t->dim[i]);
  }
  for (uint32_t i = t->rank; i < TN_MAX_RANK; ++i) t->dim[i] = t->stride[i] = 0;
}

void set_dense_like(tn_type* t, const tn_type& model, const tn_dims* dims) {
  set_dense(t, dims);
  if (model.rank != t->rank) return;
  const auto order = dense_order(model, dims);
  if (!order || std::is_sorted(order->rbegin(), order->rend())) return;
  // Axes of size 1 in the model go where row-major order has them: right after the axis before them.
  std::vector<uint32_t> outer_first(order->rbegin(), order->rend());
  for (uint32_t i = 0; i < t->rank; ++i) {
    if (std::find(outer_first.begin(), outer_first.end(), i) != outer_first.end()) continue;
    const auto before = i == 0 ? outer_first.end() : std::find(outer_first.begin(), outer_first.end(), i - 1);
    outer_first.insert(before == outer_first.end() ? outer_first.begin() : before + 1, i);
  }
  int64_t stride = 1;
  for (uint32_t n = t->rank; n-- > 0;) {
    const uint32_t axis = outer_first[n];
    t->stride[axis] = stride;
    if (t->dim[axis] != 0) stride = times(dims, stride, t->dim[axis]);
  }
}

int64_t normalise_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) return -1;
  return axis < 0 ? axis + rank : axis;
}

namespace {

// Joins one input's dim into the output's dim of the same axis. 0 and 1 are always numbers, so that a symbol is known to
// be 2 or more and what is left undecided is only whether two sizes are equal.
tn_status join_dim(int64_t* out, int64_t dim, const tn_dims* dims, tn_diag* diag) {
  if (dim == *out || dim == 1) return TN_OK;
  if (*out == 1) {
    *out = dim;
    return TN_OK;
  }
  if (TN_IS_SYM(*out) || TN_IS_SYM(dim)) {
    const tn_status s = dims->require(dims->ctx, TN_DIM_EQ, *out, dim, diag);
    if (s == TN_OK && TN_IS_SYM(*out)) *out = std::max(*out, dim);  // a number says more than a symbol
    return s;
  }
  return TN_E_SHAPE;
}

tn_status report_mismatch(const tn_op* op, const tn_type& so_far, uint32_t input, uint32_t axis, int64_t have,
                          tn_diag* diag) {
  const tn_type& t = op->type[input];
  return fail(diag, TN_E_SHAPE, error_id(kShape, 1),
              "shapes do not broadcast\nwhy: input %u is %s, the inputs before it give %s; axis -%u is %s against %s\n"
              "try: reshape or expand one of them so that each axis is equal or 1",
              input, type_text(t).c_str(), type_text(so_far).c_str(), so_far.rank - axis,
              dim_text(have).c_str(), dim_text(so_far.dim[axis]).c_str());
}

tn_status join_input(const tn_op* op, uint32_t input, const tn_dims* dims, tn_type* out, tn_diag* diag) {
  const tn_type& t = op->type[input];
  const uint32_t shift = out->rank - t.rank;
  for (uint32_t i = 0; i < t.rank; ++i) {
    tn_type so_far = *out;
    so_far.dtype = t.dtype;
    if (join_dim(&out->dim[shift + i], t.dim[i], dims, diag) != TN_OK)
      return report_mismatch(op, so_far, input, shift + i, t.dim[i], diag);
  }
  return TN_OK;
}

}  // namespace

tn_status broadcast(const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* diag) {
  out->rank = 0;
  for (uint32_t i = 0; i < op->n_in; ++i)
    if (op->type[i].dtype) out->rank = std::max(out->rank, op->type[i].rank);
  for (uint32_t i = 0; i < TN_MAX_RANK; ++i) out->dim[i] = i < out->rank ? 1 : 0, out->stride[i] = 0;
  for (uint32_t i = 0; i < op->n_in; ++i) {
    if (!op->type[i].dtype) continue;
    const tn_status s = join_input(op, i, dims, out, diag);
    if (s != TN_OK) return s;
  }
  set_dense(out, dims);
  // The first input of the output's own shape that is dense in some axis order decides the order.
  for (uint32_t i = 0; i < op->n_in; ++i) {
    const tn_type& t = op->type[i];
    if (!t.dtype || t.rank != out->rank || !std::equal(t.dim, t.dim + t.rank, out->dim) || !dense_order(t, dims)) continue;
    set_dense_like(out, t, dims);
    break;
  }
  return TN_OK;
}

}  // namespace tenon::ops
