// ops/view/slice.cpp - a regular part of each axis, by resolved starts, lengths and steps.
#include <algorithm>

#include "ops/view/view.h"

namespace tenon::ops {
namespace {

struct Part {
  std::vector<int64_t> start, length, step;
};

Part part_of(const tn_op& op) {
  return {attr_ints(op, TN_KEY_STARTS), attr_ints(op, TN_KEY_DIMS), attr_ints(op, TN_KEY_STEPS)};
}

// First and last element of the axis are inside. Front ends have resolved negative starts, ends and clamping.
tn_status check_axis(const tn_type& x, uint32_t i, const Part& p, const tn_dims* d, tn_diag* diag) {
  const int64_t last = calc(d, TN_DIM_ADD, p.start[i], calc(d, TN_DIM_MUL, calc(d, TN_DIM_SUB, p.length[i], 1), p.step[i]));
  bool inside = p.step[i] != 0;
  for (const int64_t at : {p.start[i], last})
    inside = inside && (p.length[i] == 0 || (d->require(d->ctx, TN_DIM_LE, 0, at, diag) == TN_OK &&
                                             d->require(d->ctx, TN_DIM_LT, at, x.dim[i], diag) == TN_OK));
  if (inside) return TN_OK;
  return fail(diag, TN_E_SHAPE, error_id(kShape, 16), "slice: an element lies outside, or the step is 0\nwhy: axis %u of %s, start %s, "
              "length %s, step %s\ntry: resolve negative starts and clamp the end first", i, type_text(x).c_str(),
              dim_text(p.start[i]).c_str(), dim_text(p.length[i]).c_str(), dim_text(p.step[i]).c_str());
}

tn_status infer(void*, const tn_op* op, const tn_dims* d, tn_type* out, tn_diag* diag) {
  const tn_type& x = op->type[0];
  const Part p = part_of(*op);
  if (p.start.size() != x.rank || p.length.size() != x.rank || p.step.size() != x.rank)
    return fail(diag, TN_E_SHAPE, error_id(kShape, 17), "slice: one start, length and step per axis\nwhy: the operand is %s; %zu "
                "starts, %zu lengths, %zu steps\ntry: give %d of each", type_text(x).c_str(), p.start.size(), p.length.size(),
                p.step.size(), x.rank);
  tn_status s = check_dims("slice", p.length, diag);
  tn_type t{};
  t.dtype = x.dtype;
  t.rank = x.rank;
  for (uint32_t i = 0; s == TN_OK && i < x.rank; ++i) {
    s = check_axis(x, i, p, d, diag);
    t.dim[i] = p.length[i];
    t.stride[i] = calc(d, TN_DIM_MUL, x.stride[i], p.step[i]);
  }
  if (s == TN_OK) *out = t;
  return s;
}

tn_status view(void*, const tn_op* op, const tn_dims* d, int64_t* out_offset, tn_diag*) {
  const tn_type& x = op->type[0];
  const Part p = part_of(*op);
  *out_offset = 0;
  if (std::find(p.length.begin(), p.length.end(), 0) != p.length.end()) return TN_OK;  // points at no element
  for (uint32_t i = 0; i < x.rank; ++i)
    *out_offset = calc(d, TN_DIM_ADD, *out_offset, calc(d, TN_DIM_MUL, p.start[i], x.stride[i]));
  return TN_OK;
}

// Zeros put back around and between. Negative steps are turned round first.
tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* diag) {
  Emit e(b, r, diag);
  if (!e.seed(0)) return e.status();
  const tn_type& x = e.self().type[0];
  Part p = part_of(e.self());
  const tn_dims* d = e.arithmetic();
  std::vector<int64_t> turned;
  for (uint32_t i = 0; i < x.rank; ++i) {
    if (p.step[i] >= 0 || p.length[i] == 0) continue;
    p.start[i] = calc(d, TN_DIM_ADD, p.start[i], calc(d, TN_DIM_MUL, calc(d, TN_DIM_SUB, p.length[i], 1), p.step[i]));
    p.step[i] = -p.step[i];
    turned.push_back(i);
  }
  Value g = e.seed(0);
  if (!turned.empty()) g = e.op(TN_OPID_FLIP, {g}, {Attr::ints(TN_KEY_AXES, turned)});
  std::vector<int64_t> lo(x.rank), hi(x.rank), interior(x.rank);
  for (uint32_t i = 0; i < x.rank; ++i) {
    const bool several = p.length[i] != 0 && p.length[i] != 1;
    interior[i] = several ? p.step[i] - 1 : 0;
    lo[i] = p.length[i] == 0 ? 0 : p.start[i];
    const int64_t gaps = several ? calc(d, TN_DIM_MUL, calc(d, TN_DIM_SUB, p.length[i], 1), p.step[i]) : 0;
    const int64_t end = p.length[i] == 0 ? 0 : calc(d, TN_DIM_ADD, calc(d, TN_DIM_ADD, lo[i], gaps), 1);
    hi[i] = calc(d, TN_DIM_SUB, x.dim[i], end);
  }
  e.result(0, e.op(TN_OPID_PAD, {g}, {Attr::ints(TN_KEY_LO, lo), Attr::ints(TN_KEY_HI, hi), Attr::ints(TN_KEY_INTERIOR, interior)},
                   {literal(0, x.dtype)}));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto cut = [&](std::vector<int64_t> dims, std::vector<int64_t> start, std::vector<int64_t> length, std::vector<int64_t> step) {
    add_view_cases(&list, std::move(dims), {case_ints(TN_KEY_STARTS, std::move(start)), case_ints(TN_KEY_DIMS, std::move(length)),
                                            case_ints(TN_KEY_STEPS, std::move(step))});
  };
  cut({}, {}, {}, {});
  cut({10}, {9}, {9}, {-1});
  cut({10}, {9}, {3}, {-3});
  cut({20}, {19}, {7}, {-3});
  cut({10}, {4}, {0}, {-1});
  cut({0}, {0}, {0}, {1});
  cut({3, 4}, {1, 3}, {2, 2}, {1, -2});
  cut({2, 3, 4}, {0, 1, 0}, {2, 1, 4}, {1, 2, 1});
  cut({5, 1, 4}, {4, 0, 1}, {3, 1, 0}, {-2, -1, 1});
  cut({7, 5}, {1, 2}, {3, 3}, {2, 1});
  return list;
}

constexpr tn_attr_def kAttrs[] = {attr_def(TN_KEY_STARTS, TN_ATTR_I64S, "starts", TN_ATTR_REQUIRED),
                                  attr_def(TN_KEY_DIMS, TN_ATTR_I64S, "dims", TN_ATTR_REQUIRED),
                                  attr_def(TN_KEY_STEPS, TN_ATTR_I64S, "steps", TN_ATTR_REQUIRED)};

constexpr tn_op_def def() {
  tn_op_def d = view_def(TN_OPID_SLICE, "slice", kAttrs, 3);
  d.infer = infer, d.view = view, d.vjp = vjp;
  return d;
}

}  // namespace

extern const OpDecl op_slice{
    .def = def(),
    .summary = "A regular part of each axis.",
    .formula = "y[i] = x[start + i * step]",
    .semantics = "A view. Starts, lengths and steps are resolved: each element named lies inside, steps are not 0 and may be "
                 "negative, lengths may be 0. The gradient puts zeros around and between.",
    .example = "slice f32[10] --starts 9 --dims 3 --steps -3",
    .cases = cases,
    .dtypes = kAllTypes};

}  // namespace tenon::ops
