// Uniform numbers in [0, 1) from a counter.
#include "ops/random/uniform_program.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_required(TN_KEY_DIMS, TN_ATTR_I64S, "dims"), def_i64(TN_KEY_DTYPE, "dtype", TN_F32)};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  return infer_random("random_uniform", op, dims, out, d);
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type& y = e.self().type[0];
  ProgramBuilder p(y.dtype);
  p.reserve_slots(2);
  p.output(uniform(p, y.dtype));
  e.result(0, pointwise(e, p, {}, dims_of(y)));
  return e.status();
}

}  // namespace

extern const OpDecl op_random_uniform{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_RANDOM, .op_id = TN_OPID_RANDOM_UNIFORM, .version = 1, .n_in = 0, .n_out = 1,
            .n_attr_defs = std::size(kAttrs), .name = "random_uniform", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp_zero,
            .cost = cost_elements<20>},
    .summary = "Uniform numbers in [0, 1), the same for a seed and offset on every device.",
    .formula = "y[i] = (philox(counter = offset + i, key = seed).word[0] >> 8) * 2^-24",
    .semantics = "Push 0 is the seed, push 1 the offset (u64, wraps). i is the row-major index. f64: 53 bits, ((word0 >> 5) * 2^26 + (word1 >> 6)) "
                 "* 2^-53. f16: word0 >> 21, times 2^-11; bf16: word0 >> 24, times 2^-8; so 1 is never returned.",
    .example = "dims=2,3 dtype=f32",
    .cases = random_cases,
    .dtypes = mask(TN_F32),
    .ulp_f32 = 0};

}  // namespace tenon::ops
