// Elements picked along one axis by an index of the same rank.
#include "ops/movement/rule_tools.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_required(TN_KEY_AXIS, TN_ATTR_I64, "axis")};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const tn_type &data = op->type[0], &index = op->type[1];
  const Calc calc{dims};
  int64_t axis = 0;
  if (tn_status s = need_index(d, "gather", "index", index); s != TN_OK) return s;
  if (tn_status s = read_axis(d, "gather", op, 0, data.rank, &axis); s != TN_OK) return s;
  Dims result = dims_of(data);
  bool fits = index.rank == data.rank;
  for (int i = 0; fits && i < data.rank; ++i) {
    if (i == axis)
      result[static_cast<size_t>(i)] = index.dim[i];
    else
      fits = index.dim[i] == 1 || calc.equal(index.dim[i], data.dim[i]);
  }
  if (!fits)
    return fail(d, TN_E_SHAPE, error_id(kShape, 53), "gather: index does not fit data\nwhy: data is %s, index is %s, axis %lld; other dims must be equal or 1\ntry: reshape index to data's rank",
                type_text(data).c_str(), type_text(index).c_str(), static_cast<long long>(axis));
  set_type(out, data.dtype, result, dims);
  return TN_OK;
}

// What was read several times gets the sum of its cotangents, in the compute type.
tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const uint32_t dtype = e.self().type[0].dtype;
  if (!e.seed(0) || !e.needs(0) || !is_float(dtype)) return e.status();
  const Value zeros = full(e, dims_of(e.self().type[0]), compute_type(dtype), 0);
  const Value sum = e.op(TN_OPID_SCATTER, {zeros, e.in(1), widen(e, e.seed(0))},
                         {Attr::i64(TN_KEY_AXIS, attr_i64(e.self(), TN_KEY_AXIS, 0)), Attr::i64(TN_KEY_MODE, TN_SCATTER_ADD)});
  e.result(0, cast_to(e, sum, dtype));
  return e.status();
}

tn_status cost(void*, const tn_op* op, tn_cost* out, tn_diag*) {
  const double read = elements(op->type[2]) * dtype_bits(op->type[2].dtype) / 8;
  return set_cost(out, TN_BOUND_MEMORY, 0, 2 * read + elements(op->type[1]) * dtype_bits(op->type[1].dtype) / 8);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  struct Row { Dims data, index; int64_t axis; };
  const Row rows[] = {{{5}, {3}, 0}, {{5}, {0}, 0}, {{1}, {70}, 0}, {{4, 3}, {2, 3}, 0}, {{4, 3}, {4, 2}, 1}, {{4, 3}, {2, 1}, 0},
                      {{4, 3}, {1, 5}, 1}, {{4, 3}, {1, 1}, 0}, {{3, 4, 5}, {3, 2, 5}, 1}, {{3, 4, 5}, {1, 6, 1}, 1},
                      {{3, 4, 5}, {1, 1, 7}, 2}, {{3, 4, 5}, {3, 4, 5}, 2}, {{3, 4, 5}, {2, 1, 5}, 0}, {{0, 4}, {0, 2}, 1},
                      {{2, 3, 4, 5}, {2, 3, 1, 5}, 2}, {{2, 3, 4, 5}, {1, 1, 1, 9}, 3}, {{33, 17}, {33, 9}, 1}, {{64, 3}, {100, 1}, 0}};
  for (const Row& row : rows) {
    const int64_t limit = row.data[static_cast<size_t>(row.axis)];
    all.push_back({{operand(row.data), index_operand(row.index, limit)}, {case_i64(TN_KEY_AXIS, row.axis)}});
  }
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast})
    all.push_back({{operand({6, 5, 4}, Fill::Normal, layout), index_operand({6, 3, 4}, 5, TN_I32)}, {case_i64(TN_KEY_AXIS, 1)}});
  return all;
}

}  // namespace

extern const OpDecl op_gather{
    .def = {.size = sizeof(tn_op_def), .op_id = TN_OPID_GATHER, .version = 1, .n_in = 2, .n_out = 1, .n_attr_defs = std::size(kAttrs),
            .name = "gather", .attr_defs = kAttrs, .infer = infer, .vjp = vjp, .cost = cost},
    .summary = "Elements picked along one axis.",
    .formula = "y[i] = data[i with i[axis] replaced by index[i]]",
    .semantics = "A negative index counts from the end of the axis. An index outside makes the result fail with TN_E_FAILED. Dims of "
                 "index that are 1 on another axis are broadcast. Bytes are moved, never interpreted.",
    .example = "f32[5,3] i64[2,1] axis=0",
    .cases = cases,
    .dtypes = kAllTypes,
    .ulp_f32 = 0};

}  // namespace tenon::ops
