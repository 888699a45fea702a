// A fully connected layer: x times w turned round, plus bias.
#include <algorithm>

#include "ops/movement/rule_tools.h"

namespace tenon::ops {
namespace {

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const tn_type &x = op->type[0], &w = op->type[1], &bias = op->type[2];
  const Calc calc{dims};
  if (tn_status s = need_float(d, "linear", "x", x); s != TN_OK) return s;
  if (tn_status s = need_same_dtype(d, "linear", "w", w, x); s != TN_OK) return s;
  if (tn_status s = need_rank(d, "linear", "x", x, 1, TN_MAX_RANK); s != TN_OK) return s;
  if (tn_status s = need_rank(d, "linear", "w", w, 2, 2); s != TN_OK) return s;
  if (!calc.equal(x.dim[x.rank - 1], w.dim[1]))
    return fail(d, TN_E_SHAPE, error_id(kShape, 67), "linear: features do not fit\nwhy: x is %s, w is %s; x[-1]=%lld must equal w[1]=%lld\ntry: w is [out, in]: transpose or reshape it",
                type_text(x).c_str(), type_text(w).c_str(), static_cast<long long>(x.dim[x.rank - 1]), static_cast<long long>(w.dim[1]));
  if (bias.dtype != 0) {
    if (tn_status s = need_same_dtype(d, "linear", "bias", bias, x); s != TN_OK) return s;
    if (tn_status s = need_dims(d, "linear", "bias", bias, {w.dim[0]}, calc); s != TN_OK) return s;
  }
  Dims result = dims_of(x);
  result.back() = w.dim[0];
  set_type(out, x.dtype, result, dims);
  return TN_OK;
}

// [..., k] -> [M, k]: one large product.
Value as_rows(Emit& e, const Calc& calc, Value v) {
  const Dims dims = e.dims(v);
  if (!e.ok() || dims.empty()) return v;
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < dims.size(); ++i) rows = calc.mul(rows, dims[i]);
  return reshape(e, v, {rows, dims.back()});
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& x = e.self().type[0];
  const Value rows = as_rows(e, calc_of(b), e.in(0)), turned = permute(e, e.in(1), {1, 0});
  Value y;
  if (e.has(2)) {
    ProgramBuilder p(x.dtype);
    p.output(p.op(TN_OP_ADD, p.input(0, p.compute()), p.input(1)));
    y = e.op(TN_OPID_MATMUL, {rows, turned, e.in(2)}, {Attr::program(TN_KEY_POST, p.finish())});
  } else {
    y = e.op(TN_OPID_MATMUL, {rows, turned});
  }
  e.result(0, reshape(e, y, dims_of(e.self().type[3])));
  return e.status();
}

tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  if (!e.seed(0)) return e.status();
  const Calc calc = calc_of(b);
  const Value dy = as_rows(e, calc, e.seed(0));
  if (e.needs(0)) e.result(0, reshape(e, e.op(TN_OPID_MATMUL, {dy, e.in(1)}), dims_of(e.self().type[0])));
  if (e.needs(1)) e.result(1, e.op(TN_OPID_MATMUL, {permute(e, dy, {1, 0}), as_rows(e, calc, e.in(0))}));
  if (e.has(2) && e.needs(2)) e.result(2, reduce_axes(e, TN_OPID_SUM, dy, {0}, false));
  return e.status();
}

tn_status cost(void*, const tn_op* op, tn_cost* out, tn_diag*) {
  return set_cost(out, TN_BOUND_COMPUTE, 2 * elements(op->type[op->n_in]) * static_cast<double>(op->type[1].dim[1]), operand_bytes(op));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  struct Row { Dims x; int64_t out; };
  const Row rows[] = {{{3}, 2}, {{2, 3}, 4}, {{0, 3}, 4}, {{2, 0}, 4}, {{2, 3}, 0}, {{1, 1}, 1}, {{2, 3, 4}, 5}, {{2, 0, 4}, 5}, {{17, 13}, 19},
                      {{33, 65}, 31}, {{2, 2, 2, 3}, 3}, {{1, 70}, 1}};
  for (const Row& row : rows) {
    all.push_back({{operand(row.x), operand({row.out, row.x.back()}), operand({row.out})}});
    all.push_back({{operand(row.x), operand({row.out, row.x.back()}), absent_operand()}});
  }
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast})
    all.push_back({{operand({6, 5}, Fill::Normal, layout), operand({4, 5}, Fill::Normal, layout), operand({4})}});
  return all;
}

}  // namespace

extern const OpDecl op_linear{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_MATMUL, .op_id = TN_OPID_LINEAR, .version = 1, .n_in = 3, .n_out = 1, .name = "linear",
            .infer = infer, .expand = expand, .vjp = vjp, .cost = cost},
    .summary = "A fully connected layer.",
    .formula = "y[..., o] = bias[o] + sum over i of x[..., i] * w[o, i]",
    .semantics = "Narrow floats accumulate in f32 and round once, bias included. No input feature gives the bias, or 0.",
    .example = "f32[8,16] f32[4,16] f32[4]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 8};

}  // namespace tenon::ops
