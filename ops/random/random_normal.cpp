// Normal numbers from a counter, by Box and Muller.
#include "ops/random/uniform_program.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_required(TN_KEY_DIMS, TN_ATTR_I64S, "dims"), def_i64(TN_KEY_DTYPE, "dtype", TN_F32)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  return infer_random("random_normal", op, dims, out, d);
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& y = e.self().type[0];
  ProgramBuilder p(y.dtype);
  p.reserve_slots(2);
  // 1 - u lies in (0, 1], where the logarithm is finite.
  const uint32_t wide = p.compute(), bits = wide == TN_F64 ? 32 : 24;
  const auto positive = p.op(TN_OP_SUB, p.constant(1), uniform_bits(p, 0, bits, wide));
  const auto radius = p.op(TN_OP_SQRT, p.op(TN_OP_MUL, p.constant(-2), p.op(TN_OP_LOG, positive)));
  const auto angle = p.op(TN_OP_MUL, p.constant(6.283185307179586), uniform_bits(p, 1, bits, wide));
  p.output(p.op(TN_OP_MUL, radius, p.op(TN_OP_COS, angle)));
  e.result(0, pointwise(e, p, {}, dims_of(y)));
  return e.status();
}

}  // namespace

extern const OpDecl op_random_normal{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_RANDOM, .op_id = TN_OPID_RANDOM_NORMAL, .version = 1, .n_in = 0, .n_out = 1,
            .n_attr_defs = std::size(kAttrs), .name = "random_normal", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp_zero,
            .cost = cost_elements<40>},
    .summary = "Normal numbers of mean 0 and deviation 1, the same for a seed and offset on every device.",
    .formula = "y[i] = sqrt(-2 log(1 - u0)) * cos(2 pi u1), u from words 0 and 1 of philox(counter = offset + i, key = seed)",
    .semantics = "Push 0 is the seed, push 1 the offset (u64, wraps). u = (word >> 8) * 2^-24 in f32, word * 2^-32 in f64; narrow types round the "
                 "f32 number. Equal on every device within the error of log, sqrt and cos.",
    .example = "dims=2,3 dtype=f32",
    .cases = random_cases,
    .dtypes = mask(TN_F32),
    .ulp_f32 = 16};

}  // namespace tenon::ops
