// A copy of data with elements along one axis set, added to, multiplied, or compared with updates.
#include "ops/movement/rule_tools.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_required(TN_KEY_AXIS, TN_ATTR_I64, "axis"), def_i64(TN_KEY_MODE, "mode", TN_SCATTER_SET)};

tn_status check_shapes(const tn_op* op, int64_t axis, const Calc& calc, tn_diag* d) {
  const tn_type &data = op->type[0], &index = op->type[1], &updates = op->type[2];
  bool fits = index.rank == data.rank && updates.rank == data.rank;
  for (int i = 0; fits && i < data.rank; ++i) {
    if (i == axis)
      fits = calc.equal(updates.dim[i], index.dim[i]);
    else
      fits = (index.dim[i] == 1 || calc.equal(index.dim[i], data.dim[i])) && calc.equal(updates.dim[i], data.dim[i]);
  }
  if (fits) return TN_OK;
  return fail(d, TN_E_SHAPE, error_id(kShape, 53), "scatter: index or updates do not fit data\nwhy: data is %s, index is %s, updates is %s, axis %lld\ntry: give updates data's dims, but index's on axis",
              type_text(data).c_str(), type_text(index).c_str(), type_text(updates).c_str(), static_cast<long long>(axis));
}

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  int64_t axis = 0;
  const int64_t mode = attr_i64(*op, TN_KEY_MODE, TN_SCATTER_SET);
  if (tn_status s = need_index(d, "scatter", "index", op->type[1]); s != TN_OK) return s;
  if (tn_status s = need_same_dtype(d, "scatter", "updates", op->type[2], op->type[0]); s != TN_OK) return s;
  if (tn_status s = read_axis(d, "scatter", op, 0, op->type[0].rank, &axis); s != TN_OK) return s;
  if (mode < TN_SCATTER_SET || mode > TN_SCATTER_MAX)
    return fail(d, TN_E_ARG, error_id(kArg, 52), "scatter: no such mode\nwhy: mode is %lld, modes are 0 set, 1 add, 2 mul, 3 min, 4 max\ntry: choose one of these",
                static_cast<long long>(mode));
  if (mode != TN_SCATTER_SET && op->type[0].dtype == TN_BOOL)
    return fail(d, TN_E_DTYPE, error_id(kDtype, 53), "scatter: bool can only be set\nwhy: mode is %lld, data is %s\ntry: cast data to i32", static_cast<long long>(mode),
                type_text(op->type[0]).c_str());
  if (tn_status s = check_shapes(op, axis, Calc{dims}, d); s != TN_OK) return s;
  set_type(out, op->type[0].dtype, dims_of(op->type[0]), dims);
  return TN_OK;
}

struct Parts {
  Emit& e;
  int64_t axis;
  uint32_t dtype;  // what derivatives are computed in
  Value index;
  Dims data_dims, update_dims;

  Value gather(Value data) const { return e.op(TN_OPID_GATHER, {data, index}, {Attr::i64(TN_KEY_AXIS, axis)}); }
  Value scatter(Value data, Value updates, int64_t mode) const {
    return e.op(TN_OPID_SCATTER, {data, index, updates}, {Attr::i64(TN_KEY_AXIS, axis), Attr::i64(TN_KEY_MODE, mode)});
  }
  Value zeros(const Dims& dims) const { return full(e, dims, dtype, 0); }
};

// Set: the last writer wins, so only it gets the cotangent.
void vjp_set(const Parts& p, Value seed) {
  Emit& e = p.e;
  if (e.needs(0)) e.result(0, p.scatter(seed, p.zeros(p.update_dims), TN_SCATTER_SET));
  if (!e.needs(2)) return;
  const Value rank = e.op(TN_OPID_IOTA, {}, {Attr::ints(TN_KEY_DIMS, p.update_dims), Attr::i64(TN_KEY_AXIS, p.axis), Attr::i64(TN_KEY_DTYPE, TN_I64)});
  const Value last = p.scatter(full(e, p.data_dims, TN_I64, -1), rank, TN_SCATTER_SET);
  const Value won = e.op(TN_OPID_EQUAL, {p.gather(last), rank});
  e.result(2, e.op(TN_OPID_WHERE, {won, p.gather(seed), p.zeros(p.update_dims)}));
}

// Min and max: elements equal to the result share its cotangent evenly.
void vjp_extreme(const Parts& p, Value seed, Value data, Value updates, Value out) {
  Emit& e = p.e;
  const Value kept = e.op(TN_OPID_EQUAL, {data, out}), met = e.op(TN_OPID_EQUAL, {updates, p.gather(out)});
  const Value count = p.scatter(cast_to(e, kept, p.dtype), cast_to(e, met, p.dtype), TN_SCATTER_ADD);
  const Value share = e.op(TN_OPID_DIV, {seed, count});
  if (e.needs(0)) e.result(0, e.op(TN_OPID_WHERE, {kept, share, p.zeros(p.data_dims)}));
  if (e.needs(2)) e.result(2, e.op(TN_OPID_WHERE, {met, p.gather(share), p.zeros(p.update_dims)}));
}

tn_status vjp_mul(const Parts& p, Value seed, Value updates) {
  Emit& e = p.e;
  if (e.needs(2))
    return e.fail(TN_E_UNSUPPORTED, error_id(kGrad, 50), "scatter: mode mul has no derivative for updates\nwhy: it would need the product of the other updates of each element\ntry: gather, multiply, and scatter with set");
  const Value factor = p.scatter(full(e, p.data_dims, p.dtype, 1), updates, TN_SCATTER_MUL);
  if (e.needs(0)) e.result(0, e.op(TN_OPID_MUL, {seed, factor}));
  return e.status();
}

tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const uint32_t storage = e.self().type[0].dtype;
  if (!e.seed(0) || !is_float(storage)) return e.status();
  const Parts p{e, attr_i64(e.self(), TN_KEY_AXIS, 0), compute_type(storage), e.in(1), dims_of(e.self().type[0]), dims_of(e.self().type[2])};
  const Value seed = widen(e, e.seed(0));
  switch (attr_i64(e.self(), TN_KEY_MODE, TN_SCATTER_SET)) {
    case TN_SCATTER_SET: vjp_set(p, seed); break;
    case TN_SCATTER_ADD:
      if (e.needs(0)) e.result(0, seed);
      if (e.needs(2)) e.result(2, p.gather(seed));
      break;
    case TN_SCATTER_MUL:
      if (tn_status s = vjp_mul(p, seed, widen(e, e.in(2))); s != TN_OK) return s;
      break;
    default: vjp_extreme(p, seed, widen(e, e.in(0)), widen(e, e.in(2)), widen(e, e.out(0)));
  }
  for (uint32_t i : {0u, 2u})
    if (r->result[i] != TN_NONE && e.needs(i)) e.result(i, cast_to(e, Value{r->result[i]}, storage));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  struct Row { Dims data, index; int64_t axis; };
  const Row rows[] = {{{5}, {3}, 0}, {{5}, {0}, 0}, {{3}, {20}, 0}, {{4, 3}, {2, 3}, 0}, {{4, 3}, {4, 2}, 1}, {{4, 3}, {2, 1}, 0},
                      {{4, 3}, {1, 5}, 1}, {{3, 4, 5}, {3, 2, 5}, 1}, {{3, 4, 5}, {1, 6, 1}, 1}, {{3, 4, 5}, {3, 4, 1}, 2},
                      {{0, 4}, {0, 2}, 1}, {{17, 9}, {17, 5}, 1}};
  for (const Row& row : rows) {
    Dims updates = row.data;
    updates[static_cast<size_t>(row.axis)] = row.index[static_cast<size_t>(row.axis)];
    const int64_t limit = row.data[static_cast<size_t>(row.axis)];
    for (int64_t mode = TN_SCATTER_SET; mode <= TN_SCATTER_MAX; ++mode) {
      Case c{{operand(row.data, Fill::Spaced), index_operand(row.index, limit), operand(updates, Fill::Spaced)},
             {case_i64(TN_KEY_AXIS, row.axis), case_i64(TN_KEY_MODE, mode)}};
      c.differentiable = mode == TN_SCATTER_SET || mode == TN_SCATTER_ADD;  // the others have kinks or no derivative
      all.push_back(c);
    }
  }
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast})
    all.push_back({{operand({6, 5}, Fill::Normal, layout), index_operand({6, 3}, 5, TN_I32), operand({6, 3}, Fill::Normal, layout)},
                   {case_i64(TN_KEY_AXIS, 1), case_i64(TN_KEY_MODE, TN_SCATTER_ADD)}});
  return all;
}

}  // namespace

extern const OpDecl op_scatter{
    .def = {.size = sizeof(tn_op_def), .op_id = TN_OPID_SCATTER, .version = 1, .n_in = 3, .n_out = 1, .n_attr_defs = std::size(kAttrs),
            .name = "scatter", .attr_defs = kAttrs, .infer = infer, .vjp = vjp, .cost = cost_elements<1>},
    .summary = "Updates written into a copy of data along one axis.",
    .formula = "y = data; for every i in row-major order: y[i with i[axis] replaced by index[i]] mode= updates[i]",
    .semantics = "Set: the last wins. Deterministic. A negative index counts from the end; one outside gives TN_E_FAILED. Min and max: a NaN "
                 "wins, ties share the gradient evenly. Mul has no derivative for updates. Bool can only be set.",
    .example = "f32[5] i64[3] f32[3] axis=0",
    .cases = cases,
    .dtypes = kNumbers,
    .ulp_f32 = 4};

}  // namespace tenon::ops
