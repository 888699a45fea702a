// Whole slices picked along one axis by an index of any shape.
#include "ops/movement/rule_tools.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_i64(TN_KEY_AXIS, "axis", 0)};

Dims result_dims(const tn_type& data, const tn_type& index, int64_t axis) {
  Dims dims(data.dim, data.dim + axis);
  dims.insert(dims.end(), index.dim, index.dim + index.rank);
  dims.insert(dims.end(), data.dim + axis + 1, data.dim + data.rank);
  return dims;
}

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const tn_type &data = op->type[0], &index = op->type[1];
  int64_t axis = 0;
  if (tn_status s = need_index(d, "take", "index", index); s != TN_OK) return s;
  if (tn_status s = read_axis(d, "take", op, 0, data.rank, &axis); s != TN_OK) return s;
  if (tn_status s = need_rank(d, "take", "index", index, 0, TN_MAX_RANK + 1 - data.rank); s != TN_OK) return s;
  set_type(out, data.dtype, result_dims(data, index, axis), dims);
  return TN_OK;
}

// The index as one long axis of a gather, then its own shape back.
tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type &data = e.self().type[0], &index = e.self().type[1];
  const int64_t axis = normalise_axis(attr_i64(e.self(), TN_KEY_AXIS, 0), data.rank);
  const Calc calc = calc_of(b);
  int64_t count = 1;
  for (int i = 0; i < index.rank; ++i) count = calc.mul(count, index.dim[i]);
  Dims flat(data.rank, 1);
  flat[static_cast<size_t>(axis)] = count;
  const Value picked = e.op(TN_OPID_GATHER, {e.in(0), reshape(e, e.in(1), flat)}, {Attr::i64(TN_KEY_AXIS, axis)});
  e.result(0, reshape(e, picked, result_dims(data, index, axis)));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  struct Row { Dims data, index; int64_t axis; };
  const Row rows[] = {{{5}, {3}, 0}, {{5}, {}, 0}, {{5}, {0}, 0}, {{5}, {2, 3}, 0}, {{4, 3}, {2}, 0}, {{4, 3}, {2}, 1}, {{4, 3}, {2}, -1},
                      {{4, 3}, {}, 1}, {{4, 3}, {2, 2}, 0}, {{4, 3}, {0, 2}, 1}, {{3, 4, 5}, {6}, 1}, {{3, 4, 5}, {2, 3}, 1},
                      {{3, 4, 5}, {2, 3}, 2}, {{0, 4}, {3}, 1}, {{10, 8}, {7}, 0}, {{100, 16}, {4, 9}, 0}, {{2, 3, 4, 5}, {2, 2}, 2},
                      {{1, 7}, {70}, 0}, {{33}, {65}, 0}};
  for (const Row& row : rows) {
    const int64_t limit = row.data[static_cast<size_t>(normalise_axis(row.axis, static_cast<int64_t>(row.data.size())))];
    all.push_back({{operand(row.data), index_operand(row.index, limit)}, {case_i64(TN_KEY_AXIS, row.axis)}});
  }
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast})
    all.push_back({{operand({6, 5}, Fill::Normal, layout), index_operand({3}, 5, TN_I32)}, {case_i64(TN_KEY_AXIS, 1)}});
  return all;
}

}  // namespace

extern const OpDecl op_take{
    .def = {.size = sizeof(tn_op_def), .op_id = TN_OPID_TAKE, .version = 1, .n_in = 2, .n_out = 1, .n_attr_defs = std::size(kAttrs),
            .name = "take", .attr_defs = kAttrs, .infer = infer, .expand = expand, .cost = cost_move},
    .summary = "Slices picked along one axis, as NumPy's take.",
    .formula = "y[before, j, after] = data[before, index[j], after]",
    .semantics = "A negative index counts from the end; one outside gives TN_E_FAILED. A slice taken twice gets both gradients.",
    .example = "f32[10,4] i64[3] axis=0",
    .cases = cases,
    .dtypes = kAllTypes,
    .ulp_f32 = 0};

}  // namespace tenon::ops
