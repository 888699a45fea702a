// A border of one value, spaces between elements, or, with negative amounts, a crop.
#include <algorithm>

#include "ops/movement/rule_tools.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_required(TN_KEY_LO, TN_ATTR_I64S, "lo"), def_required(TN_KEY_HI, TN_ATTR_I64S, "hi"),
                                  def_optional(TN_KEY_INTERIOR, TN_ATTR_I64S, "interior")};

struct Amounts {
  Dims lo, hi, interior;
};

Amounts amounts(const tn_op& op) {
  return {attr_ints(op, TN_KEY_LO), attr_ints(op, TN_KEY_HI), attr_ints(op, TN_KEY_INTERIOR, Dims(op.type[0].rank, 0))};
}

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const tn_type& x = op->type[0];
  const Calc calc{dims};
  Amounts a;
  if (tn_status s = read_list(d, "pad", op, TN_KEY_LO, "lo", x.rank, 0, INT64_MIN, &a.lo); s != TN_OK) return s;
  if (tn_status s = read_list(d, "pad", op, TN_KEY_HI, "hi", x.rank, 0, INT64_MIN, &a.hi); s != TN_OK) return s;
  if (tn_status s = read_list(d, "pad", op, TN_KEY_INTERIOR, "interior", x.rank, 0, 0, &a.interior); s != TN_OK) return s;
  Dims result;
  for (size_t i = 0; i < x.rank; ++i) {
    // Symbols are 2 or more, so "no elements, no spaces" is decided by numbers alone.
    const int64_t spread = x.dim[i] == 0 ? 0 : calc.add(x.dim[i], calc.mul(calc.sub(x.dim[i], 1), a.interior[i]));
    result.push_back(calc.add(calc.add(spread, a.lo[i]), a.hi[i]));
    if (!calc.at_most(0, result.back()))
      return fail(d, TN_E_SHAPE, error_id(kShape, 56), "pad: a crop takes more than there is\nwhy: axis %zu of %s has size %lld with lo %lld and hi %lld\ntry: crop less",
                  i, type_text(x).c_str(), static_cast<long long>(result.back()), static_cast<long long>(a.lo[i]),
                  static_cast<long long>(a.hi[i]));
  }
  set_type(out, x.dtype, result, dims);
  return TN_OK;
}

bool touches(const Amounts& a, size_t axis) { return a.lo[axis] != 0 || a.hi[axis] != 0 || a.interior[axis] != 0; }

// Which element of x stands at each place of the axis; places in the border and between elements name a neighbour, which
// is overwritten later.
Value source_index(Emit& e, const Amounts& a, size_t axis, size_t rank, int64_t size, int64_t out_size) {
  ProgramBuilder p(TN_I64);
  const auto shifted = p.op(TN_OP_SUB, p.index(static_cast<uint32_t>(axis), TN_I64), p.constant(static_cast<double>(a.lo[axis])));
  const auto place = a.interior[axis] == 0 ? shifted : p.op(TN_OP_DIV, shifted, p.constant(static_cast<double>(a.interior[axis] + 1)));
  p.output(p.op(TN_OP_MIN, p.op(TN_OP_MAX, place, p.constant(0)), p.constant(static_cast<double>(size - 1))));
  Dims dims(rank, 1);
  dims[axis] = out_size;
  return pointwise(e, p, {}, dims);
}

// One pass that puts the value wherever no element of x stands.
Value fill_gaps(Emit& e, Value spread, const Amounts& a, const tn_type& x) {
  ProgramBuilder p(x.dtype);
  p.reserve_slots(1);
  auto inside = ProgramBuilder::Id{0};
  bool first = true;
  const auto demand = [&](ProgramBuilder::Id condition) {
    inside = first ? condition : p.op(TN_OP_AND, inside, condition);
    first = false;
  };
  const auto value = p.input(0);
  for (size_t i = 0; i < x.rank; ++i) {
    const int64_t step = a.interior[i] + 1, last = (x.dim[i] - 1) * step;
    if (!touches(a, i)) continue;
    const auto at = p.op(TN_OP_SUB, p.index(static_cast<uint32_t>(i), TN_I64), p.constant(static_cast<double>(a.lo[i]), TN_I64));
    if (a.lo[i] > 0) demand(p.op(TN_OP_LE, p.constant(0, TN_I64), at));
    if (a.hi[i] > 0) demand(p.op(TN_OP_LE, at, p.constant(static_cast<double>(last), TN_I64)));
    if (step > 1) demand(p.op(TN_OP_EQ, p.op(TN_OP_REM, at, p.constant(static_cast<double>(step), TN_I64)), p.constant(0, TN_I64)));
  }
  p.output(first ? value : p.op(TN_OP_SELECT, inside, value, p.slot(0)));
  const Value in[] = {spread};
  return pointwise(e, p, in);
}

Value crop(Emit& e, Value x, const Amounts& a, const Dims& dims) {
  Dims starts;
  for (int64_t lo : a.lo) starts.push_back(-lo);
  const Value view = e.op(TN_OPID_SLICE, {x}, {Attr::ints(TN_KEY_STARTS, starts), Attr::ints(TN_KEY_DIMS, dims),
                                               Attr::ints(TN_KEY_STEPS, Dims(dims.size(), 1))});
  return e.op(TN_OPID_COPY, {view});
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type &x = e.self().type[0], &y = e.self().type[1];
  const Amounts a = amounts(e.self());
  const Dims dims = dims_of(y);
  bool empty = false, only_crop = true;
  for (size_t i = 0; i < x.rank; ++i) {
    empty = empty || x.dim[i] == 0 || y.dim[i] == 0;
    only_crop = only_crop && a.lo[i] <= 0 && a.hi[i] <= 0 && a.interior[i] == 0;
  }
  Value v = e.in(0);
  if (empty) {
    v = e.op(TN_OPID_FULL, {}, {Attr::ints(TN_KEY_DIMS, dims), Attr::i64(TN_KEY_DTYPE, x.dtype)}, {slot(0)});
  } else if (only_crop) {
    v = crop(e, v, a, dims);
  } else {
    for (size_t i = 0; i < x.rank; ++i)
      if (touches(a, i))
        v = e.op(TN_OPID_GATHER, {v, source_index(e, a, i, x.rank, x.dim[i], y.dim[i])}, {Attr::i64(TN_KEY_AXIS, static_cast<int64_t>(i))});
    v = fill_gaps(e, v, a, x);
  }
  e.result(0, v);
  return e.status();
}

// Padding turned round is a crop, and a crop turned round is padding with zeros.
tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& x = e.self().type[0];
  if (!e.seed(0) || !is_float(x.dtype)) return e.status();
  Amounts a = amounts(e.self());
  for (size_t i = 0; i < x.rank; ++i)
    if (x.dim[i] == 0) {
      e.result(0, full(e, dims_of(x), x.dtype, 0));
      return e.status();
    }
  Dims steps;
  bool spaced = false;
  for (size_t i = 0; i < x.rank; ++i) {
    a.lo[i] = -a.lo[i];
    a.hi[i] = -a.hi[i];
    steps.push_back(a.interior[i] + 1);
    spaced = spaced || a.interior[i] != 0;
  }
  Value v = e.op(TN_OPID_PAD, {e.seed(0)}, {Attr::ints(TN_KEY_LO, a.lo), Attr::ints(TN_KEY_HI, a.hi)},
                 {literal(0, compute_type(x.dtype))});
  if (spaced)
    v = e.op(TN_OPID_SLICE, {v}, {Attr::ints(TN_KEY_STARTS, Dims(x.rank, 0)), Attr::ints(TN_KEY_DIMS, dims_of(x)), Attr::ints(TN_KEY_STEPS, steps)});
  e.result(0, v);
  return e.status();
}

std::vector<Case> cases() {
  struct Row { Dims dims, lo, hi, interior; };
  const Row rows[] = {
      {{5}, {1}, {2}, {0}}, {{5}, {0}, {0}, {0}}, {{5}, {-1}, {-2}, {0}}, {{5}, {-5}, {0}, {0}}, {{0}, {2}, {1}, {0}}, {{0}, {0}, {0}, {3}},
      {{5}, {0}, {0}, {1}}, {{5}, {2}, {-3}, {2}}, {{1}, {0}, {0}, {4}}, {{3, 4}, {1, 0}, {0, 2}, {0, 0}}, {{3, 4}, {-1, 1}, {0, -1}, {0, 0}},
      {{3, 4}, {1, 1}, {1, 1}, {1, 2}}, {{3, 0}, {1, 1}, {1, 1}, {0, 0}}, {{2, 3, 5, 4}, {0, 0, 1, 1}, {0, 0, 1, 1}, {0, 0, 0, 0}},
      {{2, 3, 5, 4}, {0, 0, 2, 0}, {0, 0, 0, 3}, {0, 0, 1, 1}}, {{1, 1, 1}, {3, 3, 3}, {3, 3, 3}, {0, 0, 0}}, {{17, 13}, {5, 0}, {0, 7}, {0, 0}},
      {{4}, {-2}, {3}, {0}}, {{4}, {3}, {-2}, {1}}, {{2, 2, 2, 2}, {1, 0, 1, 0}, {0, 1, 0, 1}, {1, 0, 0, 1}}};
  std::vector<Case> all;
  for (const Row& row : rows)
    all.push_back({{operand(row.dims)}, {case_ints(TN_KEY_LO, row.lo), case_ints(TN_KEY_HI, row.hi), case_ints(TN_KEY_INTERIOR, row.interior)}, {1.5}});
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast})
    all.push_back({{operand({5, 6}, Fill::Normal, layout)}, {case_ints(TN_KEY_LO, {1, -1}), case_ints(TN_KEY_HI, {0, 2})}, {0}});
  return all;
}

}  // namespace

extern const OpDecl op_pad{
    .def = {.size = sizeof(tn_op_def), .op_id = TN_OPID_PAD, .version = 1, .n_in = 1, .n_out = 1, .n_attr_defs = std::size(kAttrs),
            .name = "pad", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp, .cost = cost_move},
    .summary = "A border of one value around x; spaces between elements; negative amounts crop.",
    .formula = "y[lo + j * (interior + 1)] = x[j] where that place exists, else the value",
    .semantics = "Spaces stand between elements only, not after the last, and take the value too. Crops act after the spaces are in. An empty axis "
                 "becomes lo + hi values. The value has no derivative.",
    .example = "f32[2,3] lo=1,1 hi=1,1",
    .cases = cases,
    .dtypes = kNumbers,
    .ulp_f32 = 0};

}  // namespace tenon::ops
