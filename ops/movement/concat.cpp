// Arrays joined along one axis.
#include "ops/movement/rule_tools.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_i64(TN_KEY_AXIS, "axis", 0)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  if (op->n_in == 0)
    return fail(d, TN_E_ARG, error_id(kShape, 58), "concat: nothing to join\nwhy: there are 0 inputs, the element type is unknown\ntry: give at least one input");
  const tn_type& first = op->type[0];
  const Calc calc{dims};
  int64_t axis = 0;
  if (tn_status s = read_axis(d, "concat", op, 0, first.rank, &axis); s != TN_OK) return s;
  Dims result = dims_of(first);
  for (uint32_t k = 1; k < op->n_in; ++k) {
    const tn_type& t = op->type[k];
    if (tn_status s = need_same_dtype(d, "concat", "an input", t, first); s != TN_OK) return s;
    bool fits = t.rank == first.rank;
    for (int i = 0; fits && i < first.rank; ++i) fits = i == axis || calc.equal(t.dim[i], first.dim[i]);
    if (!fits)
      return fail(d, TN_E_SHAPE, error_id(kShape, 57), "concat: inputs do not fit\nwhy: input 0 is %s, input %u is %s; only axis %lld may differ\ntry: reshape or slice input %u",
                  type_text(first).c_str(), k, type_text(t).c_str(), static_cast<long long>(axis), k);
    result[static_cast<size_t>(axis)] = calc.add(result[static_cast<size_t>(axis)], t.dim[axis]);
  }
  set_type(out, first.dtype, result, dims);
  return TN_OK;
}

// Every place of the result names an element of `v`, clamped: places of the neighbour are overwritten by the select.
Value spread(Emit& e, Value v, size_t axis, int64_t offset, int64_t out_size) {
  const Dims have = e.dims(v);
  if (!e.ok()) return v;
  ProgramBuilder p(TN_I64);
  const auto at = p.op(TN_OP_SUB, p.index(static_cast<uint32_t>(axis), TN_I64), p.constant(static_cast<double>(offset)));
  p.output(p.op(TN_OP_MIN, p.op(TN_OP_MAX, at, p.constant(0)), p.constant(static_cast<double>(have[axis] - 1))));
  Dims dims(have.size(), 1);
  dims[axis] = out_size;
  return e.op(TN_OPID_GATHER, {v, pointwise(e, p, {}, dims)}, {Attr::i64(TN_KEY_AXIS, static_cast<int64_t>(axis))});
}

Value join(Emit& e, Value a, Value b, size_t axis, uint32_t dtype) {
  const Dims da = e.dims(a), db = e.dims(b);
  if (!e.ok()) return a;
  const int64_t split = da[axis], size = split + db[axis];
  ProgramBuilder p(dtype);
  const auto left = p.input(0), right = p.input(1);
  const auto in_left = p.op(TN_OP_LT, p.index(static_cast<uint32_t>(axis), TN_I64), p.constant(static_cast<double>(split), TN_I64));
  p.output(p.op(TN_OP_SELECT, in_left, left, right));
  const Value in[] = {spread(e, a, axis, 0, size), spread(e, b, axis, split, size)};
  return pointwise(e, p, in);
}

// Joined in pairs, so that each element is moved log2(inputs) times.
tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const size_t axis = static_cast<size_t>(normalise_axis(attr_i64(e.self(), TN_KEY_AXIS, 0), e.self().type[0].rank));
  const uint32_t dtype = e.self().type[0].dtype;
  std::vector<Value> parts;
  for (uint32_t k = 0; k < e.self().n_in; ++k)
    if (e.self().type[k].dim[axis] != 0) parts.push_back(e.in(k));
  if (parts.empty()) parts.push_back(e.in(0));
  if (parts.size() == 1) parts[0] = e.op(TN_OPID_COPY, {parts[0]});
  while (parts.size() > 1) {
    std::vector<Value> half;
    for (size_t k = 0; k + 1 < parts.size(); k += 2) half.push_back(join(e, parts[k], parts[k + 1], axis, dtype));
    if (parts.size() % 2 != 0) half.push_back(parts.back());
    parts.swap(half);
  }
  e.result(0, parts[0]);
  return e.status();
}

tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  if (!e.seed(0) || !is_float(e.self().type[0].dtype)) return e.status();
  const Calc calc = calc_of(b);
  const size_t axis = static_cast<size_t>(normalise_axis(attr_i64(e.self(), TN_KEY_AXIS, 0), e.self().type[0].rank));
  Dims starts(e.self().type[0].rank, 0);
  for (uint32_t k = 0; k < e.self().n_in; ++k) {
    const Dims dims = dims_of(e.self().type[k]);
    if (e.needs(k))
      e.result(k, e.op(TN_OPID_SLICE, {e.seed(0)}, {Attr::ints(TN_KEY_STARTS, starts), Attr::ints(TN_KEY_DIMS, dims), Attr::ints(TN_KEY_STEPS, Dims(dims.size(), 1))}));
    starts[axis] = calc.add(starts[axis], dims[axis]);
  }
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  struct Row { Dims base; std::vector<int64_t> sizes; int64_t axis; };
  const Row rows[] = {{{1}, {3, 4}, 0}, {{1}, {3}, 0}, {{1}, {0, 4}, 0}, {{1}, {4, 0}, 0}, {{1}, {0, 0}, 0}, {{1}, {1, 1, 1}, 0},
                      {{1}, {5, 0, 2, 3, 1}, 0}, {{2, 1}, {3, 4}, 1}, {{2, 1}, {3, 4}, -1}, {{1, 5}, {2, 3, 4}, 0}, {{0, 1}, {2, 3}, 1},
                      {{2, 1, 3}, {4, 5, 6}, 1}, {{2, 3, 1}, {1, 2}, 2}, {{2, 1, 4, 4}, {3, 5}, 1}, {{1}, {33, 31}, 0},
                      {{1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, 0}, {{1, 17}, {70, 1}, 0}, {{3, 1}, {64, 64}, 1}, {{1, 1}, {7, 7, 7, 7}, 0},
                      {{2, 2, 1, 2}, {3, 3, 3}, 2}};
  for (const Row& row : rows) {
    Case c;
    for (int64_t size : row.sizes) {
      Dims dims = row.base;
      dims[static_cast<size_t>(normalise_axis(row.axis, static_cast<int64_t>(dims.size())))] = size;
      c.in.push_back(operand(dims));
    }
    c.attrs = {case_i64(TN_KEY_AXIS, row.axis)};
    all.push_back(c);
  }
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast})
    all.push_back({{operand({3, 4}, Fill::Normal, layout), operand({3, 5}, Fill::Normal, layout)}, {case_i64(TN_KEY_AXIS, 1)}});
  return all;
}

}  // namespace

extern const OpDecl op_concat{
    .def = {.size = sizeof(tn_op_def), .op_id = TN_OPID_CONCAT, .version = 1, .n_in = TN_VARIADIC, .n_out = 1,
            .n_attr_defs = std::size(kAttrs), .name = "concat", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp,
            .cost = cost_move},
    .summary = "Arrays joined along one axis.",
    .formula = "y = inputs one after another along axis",
    .semantics = "Inputs of size 0 on the axis add nothing. At least one input. Elements are not changed.",
    .example = "f32[2,3] f32[2,5] axis=1",
    .cases = cases,
    .dtypes = kNumbers,
    .ulp_f32 = 0};

}  // namespace tenon::ops
