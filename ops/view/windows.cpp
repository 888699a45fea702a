// ops/view/windows.cpp - all windows of an image as a view: x [..., H, W] -> y [..., OH, OW, KH, KW].
#include "ops/view/view.h"

namespace tenon::ops {
namespace {

struct Window {
  std::vector<int64_t> kernel, step, dilation;
};

Window window_of(const tn_op& op) {
  return {attr_ints(op, TN_KEY_KERNEL), attr_ints(op, TN_KEY_STRIDES, {1, 1}), attr_ints(op, TN_KEY_DILATIONS, {1, 1})};
}

bool positive_pair(const std::vector<int64_t>& v) { return v.size() == 2 && v[0] > 0 && v[1] > 0; }

tn_status infer(void*, const tn_op* op, const tn_dims* d, tn_type* out, tn_diag* diag) {
  const tn_type& x = op->type[0];
  const Window w = window_of(*op);
  if (x.rank < 2 || x.rank + 2 > TN_MAX_RANK || !positive_pair(w.kernel) || !positive_pair(w.step) || !positive_pair(w.dilation))
    return fail(diag, TN_E_SHAPE, error_id(kShape, 18), "windows: the operand or an attribute does not fit\nwhy: the operand is %s "
                "(2 to 6 axes); kernel, strides and dilations are pairs of sizes of 1 or more\ntry: give [height, width] each",
                type_text(x).c_str());
  tn_type t{};
  t.dtype = x.dtype;
  t.rank = static_cast<uint8_t>(x.rank + 2);
  for (uint32_t i = 0; i + 2 < x.rank; ++i) t.dim[i] = x.dim[i], t.stride[i] = x.stride[i];
  for (uint32_t k = 0; k < 2; ++k) {
    const uint32_t axis = x.rank - 2 + k;
    const int64_t span = calc(d, TN_DIM_ADD, calc(d, TN_DIM_MUL, w.kernel[k] - 1, w.dilation[k]), 1);
    if (d->require(d->ctx, TN_DIM_LE, span, x.dim[axis], diag) != TN_OK)
      return fail(diag, TN_E_SHAPE, error_id(kShape, 19), "windows: the window is larger than the image\nwhy: axis %u of %s, window of %s\n"
                  "try: pad the image, or take a smaller kernel", axis, type_text(x).c_str(), dim_text(span).c_str());
    t.dim[axis] = calc(d, TN_DIM_ADD, calc(d, TN_DIM_FLOORDIV, calc(d, TN_DIM_SUB, x.dim[axis], span), w.step[k]), 1);
    t.stride[axis] = calc(d, TN_DIM_MUL, x.stride[axis], w.step[k]);
    t.dim[axis + 2] = w.kernel[k];
    t.stride[axis + 2] = calc(d, TN_DIM_MUL, x.stride[axis], w.dilation[k]);
  }
  *out = t;
  return TN_OK;
}

// Element `index` of the last axis, that axis dropped.
Value last_axis_element(Emit& e, Value v, int64_t index) {
  std::vector<int64_t> dims = e.dims(v);
  if (!e.ok()) return v;
  std::vector<int64_t> start(dims.size()), step(dims.size(), 1);
  start.back() = index;
  dims.back() = 1;
  const Value part = e.op(TN_OPID_SLICE, {v}, {Attr::ints(TN_KEY_STARTS, start), Attr::ints(TN_KEY_DIMS, dims), Attr::ints(TN_KEY_STEPS, step)});
  dims.pop_back();
  return e.op(TN_OPID_RESHAPE, {part}, {Attr::ints(TN_KEY_DIMS, dims)});
}

// Folds the last axis (offsets in the window) back into `axis`: KW pads, not KH * KW, since height and width are apart.
Value fold(Emit& e, Value v, uint32_t axis, int64_t kernel, int64_t step, int64_t dilation, int64_t size) {
  Value sum;
  for (int64_t j = 0; j < kernel && e.ok(); ++j) {
    const Value part = pad_axis(e, last_axis_element(e, v, j), axis, j * dilation, step, size);
    sum = sum ? e.op(TN_OPID_ADD, {sum, part}) : part;
  }
  return sum;
}

tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  if (!e.seed(0)) return e.status();
  const tn_type& x = e.self().type[0];
  const Window w = window_of(e.self());
  const uint32_t height = x.rank - 2u, width = x.rank - 1u;
  const Value columns = fold(e, e.seed(0), width, w.kernel[1], w.step[1], w.dilation[1], x.dim[width]);
  e.result(0, fold(e, columns, height, w.kernel[0], w.step[0], w.dilation[0], x.dim[height]));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto over = [&](std::vector<int64_t> dims, std::vector<int64_t> kernel, std::vector<int64_t> step, std::vector<int64_t> dilation) {
    add_view_cases(&list, std::move(dims), {case_ints(TN_KEY_KERNEL, std::move(kernel)), case_ints(TN_KEY_STRIDES, std::move(step)),
                                            case_ints(TN_KEY_DILATIONS, std::move(dilation))});
  };
  over({1, 1}, {1, 1}, {1, 1}, {1, 1});
  over({5, 7}, {3, 3}, {1, 1}, {1, 1});
  over({2, 6, 6}, {2, 2}, {2, 2}, {1, 1});
  over({2, 3, 7, 5}, {3, 2}, {2, 1}, {1, 2});
  over({0, 4, 4}, {2, 2}, {1, 1}, {1, 1});
  over({1, 2, 1, 5, 9}, {2, 3}, {3, 2}, {2, 2});
  return list;
}

constexpr tn_attr_def kAttrs[] = {attr_def(TN_KEY_STRIDES, TN_ATTR_I64S, "strides"), attr_def(TN_KEY_DILATIONS, TN_ATTR_I64S, "dilations"),
                                  attr_def(TN_KEY_KERNEL, TN_ATTR_I64S, "kernel", TN_ATTR_REQUIRED)};

constexpr tn_op_def def() {
  tn_op_def d = view_def(TN_OPID_WINDOWS, "windows", kAttrs, 3);
  d.infer = infer, d.vjp = vjp;
  return d;
}

}  // namespace

extern const OpDecl op_windows{
    .def = def(),
    .summary = "All windows of an image, as an overlapping view.",
    .formula = "y[..., i, j, a, b] = x[..., i * stride_h + a * dilation_h, j * stride_w + b * dilation_w]",
    .semantics = "Only whole windows. The gradient adds the windows back where they overlap.",
    .example = "windows f32[1,1,8,8] --kernel 3,3",
    .cases = cases,
    .dtypes = kAllTypes};

}  // namespace tenon::ops
