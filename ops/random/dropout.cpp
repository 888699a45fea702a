// Elements set to zero at random, the others raised to keep the mean.
#include "ops/random/uniform_program.h"

namespace tenon::ops {
namespace {

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const tn_type& x = op->type[0];
  if (tn_status s = need_float(d, "dropout", "x", x); s != TN_OK) return s;
  set_type(out, x.dtype, dims_of(x), dims, &x);
  return TN_OK;
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const uint32_t dtype = e.self().type[0].dtype;
  ProgramBuilder p(dtype);
  p.reserve_slots(3);
  const auto rate = p.slot(2), x = p.input(0);
  const auto kept = p.op(TN_OP_LE, rate, uniform(p, p.compute()));
  p.output(p.op(TN_OP_SELECT, kept, p.op(TN_OP_DIV, x, p.op(TN_OP_SUB, p.constant(1), rate)), p.constant(0)));
  const Value in[] = {e.in(0)};
  e.result(0, pointwise(e, p, in));
  return e.status();
}

// The mask is drawn again from the same seed and offset: nothing is kept between the passes. The cotangent is brought into
// x's dims by the builder, and elements are counted in row-major order, so strides do not matter.
tn_status vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  if (e.seed(0)) e.result(0, e.op(TN_OPID_DROPOUT, {e.seed(0)}, {}, {slot(0), slot(1), slot(2)}));
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (double rate : {0.0, 0.5, 1.0})
    for (const Dims& dims : {Dims{}, Dims{0}, Dims{1}, Dims{70}, Dims{2, 3, 4}, Dims{16, 17}}) all.push_back({{operand(dims)}, {}, {7, 12345, rate}, 3});
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast}) all.push_back({{operand({6, 5}, Fill::Normal, layout)}, {}, {7, 99, 0.25}, 3});
  return all;
}

}  // namespace

extern const OpDecl op_dropout{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_RANDOM, .op_id = TN_OPID_DROPOUT, .version = 1, .n_in = 1, .n_out = 1, .name = "dropout",
            .infer = infer, .expand = expand, .vjp = vjp, .cost = cost_elements<22>},
    .summary = "Elements set to zero at random, the others raised to keep the mean.",
    .formula = "y[i] = x[i] / (1 - p) where uniform[i] >= p, else 0",
    .semantics = "uniform[i] is random_uniform's number of the compute type for the same seed (push 0), offset (push 1) and row-major index; p is push "
                 "2. p = 0 keeps all, p = 1 gives zeros, also of NaN and Inf. The gradient uses the same mask.",
    .example = "f32[4,8]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 4};

}  // namespace tenon::ops
