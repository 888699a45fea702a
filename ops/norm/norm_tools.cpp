#include "ops/norm/norm_tools.h"

namespace tenon::ops {

std::vector<Case> axis_cases(Fill fill) {
  std::vector<Case> all;
  struct Row { Dims dims; int64_t axis; };
  const Row rows[] = {{{1}, 0}, {{7}, 0}, {{0}, 0}, {{2, 3}, -1}, {{2, 3}, 0}, {{2, 0}, 1}, {{0, 3}, 1}, {{4, 1}, -1}, {{3, 63}, 1},
                      {{3, 64}, 1}, {{3, 65}, 1}, {{2, 129}, -1}, {{2, 3, 4}, 0}, {{2, 3, 4}, 1}, {{2, 3, 4}, 2}, {{2, 3, 4}, -3},
                      {{2, 3, 4, 5}, 1}, {{1, 1, 1, 9}, 3}, {{70, 2}, 0}};
  for (const Row& row : rows) all.push_back({{operand(row.dims, fill)}, {case_i64(TN_KEY_AXIS, row.axis)}});
  all.push_back({{operand({3, 5}, fill)}});
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast})
    all.push_back({{operand({6, 5}, fill, layout)}, {case_i64(TN_KEY_AXIS, 1)}});
  return all;
}

tn_status check_affine(tn_diag* d, const char* name, const tn_op* op, const Dims& expected, const Calc& calc) {
  const char* const names[] = {"x", "scale", "bias"};
  for (uint32_t i = 1; i < 3; ++i) {
    if (op->type[i].dtype == 0) continue;
    if (tn_status s = need_same_dtype(d, name, names[i], op->type[i], op->type[0]); s != TN_OK) return s;
    if (tn_status s = need_dims(d, name, names[i], op->type[i], expected, calc); s != TN_OK) return s;
  }
  return TN_OK;
}

Value normalise(Emit& e, Value x, Value mean, Value rstd, Value scale, Value bias, uint32_t storage) {
  ProgramBuilder p(storage);
  std::vector<Value> in{x, mean, rstd};
  const uint32_t wide = p.compute();
  auto y = p.op(TN_OP_MUL, p.op(TN_OP_SUB, p.input(0, e.type(x).dtype), p.input(1, wide)), p.input(2, wide));
  if (scale) {
    y = p.op(TN_OP_MUL, y, p.input(static_cast<uint32_t>(in.size())));
    in.push_back(scale);
  }
  if (bias) {
    y = p.op(TN_OP_ADD, y, p.input(static_cast<uint32_t>(in.size())));
    in.push_back(bias);
  }
  p.output(y);
  return pointwise(e, p, in);
}

Value reciprocal_deviation(Emit& e, Value variance, double epsilon) {
  ProgramBuilder p(e.type(variance).dtype);
  if (!e.ok()) return variance;
  p.output(p.op(TN_OP_RSQRT, p.op(TN_OP_ADD, p.input(0), p.constant(epsilon))));
  const Value in[] = {variance};
  return pointwise(e, p, in);
}

Value wide_product(Emit& e, Value a, Value b) {
  const uint32_t da = e.type(a).dtype, db = e.type(b).dtype;
  if (!e.ok()) return a;
  ProgramBuilder p(da);
  p.output(p.op(TN_OP_MUL, p.input(0, da), p.input(1, db)), p.compute());
  const Value in[] = {a, b};
  return pointwise(e, p, in);
}

Value normal_gradient(Emit& e, Value x, Value mean, Value rstd, Value g, Value m1, Value m2, uint32_t storage) {
  ProgramBuilder p(storage);
  const uint32_t wide = p.compute();
  const auto r = p.input(2, wide);
  const auto xhat = p.op(TN_OP_MUL, p.op(TN_OP_SUB, p.input(0, e.type(x).dtype), p.input(1, wide)), r);
  const auto centred = p.op(TN_OP_SUB, p.op(TN_OP_SUB, p.input(3, wide), p.input(4, wide)), p.op(TN_OP_MUL, xhat, p.input(5, wide)));
  p.output(p.op(TN_OP_MUL, centred, r));
  const Value in[] = {x, mean, rstd, g, m1, m2};
  return pointwise(e, p, in);
}

}  // namespace tenon::ops
