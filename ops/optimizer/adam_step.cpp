// One step of Adam, or of AdamW with the decoupled decay.
#include "ops/optimizer/step_tools.h"

namespace tenon::ops {
namespace {

enum Slot : uint32_t { kRate, kBeta1, kBeta2, kEpsilon, kCoupled, kDecoupled, kCorrection1, kCorrection2, kSlots };

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  static constexpr const char* kOperands[] = {"p", "g", "m", "v"};
  return infer_step("adam_step", kOperands, op, dims, out, d);
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  ProgramBuilder p(e.self().type[0].dtype);
  p.reserve_slots(kSlots);
  const auto one = p.constant(1), rate = p.slot(kRate);
  const auto shrink = p.op(TN_OP_SUB, one, p.op(TN_OP_MUL, rate, p.slot(kDecoupled)));
  const auto w = p.op(TN_OP_MUL, p.input(0), shrink);
  const auto g = p.op(TN_OP_ADD, p.input(1), p.op(TN_OP_MUL, p.slot(kCoupled), w));
  const auto mix = [&](Slot beta, uint32_t operand, ProgramBuilder::Id fresh) {
    return p.op(TN_OP_ADD, p.op(TN_OP_MUL, p.slot(beta), p.input(operand)), p.op(TN_OP_MUL, p.op(TN_OP_SUB, one, p.slot(beta)), fresh));
  };
  const auto m = mix(kBeta1, 2, g), v = mix(kBeta2, 3, p.op(TN_OP_MUL, g, g));
  // epsilon is added to the root of the corrected v, outside the root.
  const auto root = p.op(TN_OP_DIV, p.op(TN_OP_SQRT, v), p.op(TN_OP_SQRT, p.slot(kCorrection2)));
  const auto step = p.op(TN_OP_DIV, m, p.op(TN_OP_ADD, root, p.slot(kEpsilon)));
  p.output(p.op(TN_OP_SUB, w, p.op(TN_OP_MUL, p.op(TN_OP_DIV, rate, p.slot(kCorrection1)), step)));
  p.output(m);
  p.output(v);
  const Value in[] = {e.in(0), e.in(1), e.in(2), e.in(3)};
  const std::vector<Value> out = pointwise_outputs(e, p, in, 3);
  for (uint32_t i = 0; i < 3; ++i) e.result(i, out[i]);
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Dims& dims : step_dims())
    for (bool decoupled : {false, true})
      all.push_back({{operand(dims), operand(dims), operand(dims), operand(dims, Fill::Positive)},
                     {},
                     {1e-2, 0.9, 0.99, 1e-8, decoupled ? 0.0 : 0.01, decoupled ? 0.01 : 0.0, 0.1, 0.01}});
  for (Layout layout : {Layout::Permuted, Layout::Gapped})
    all.push_back({{operand({6, 5}, Fill::Normal, layout), operand({6, 5}), operand({6, 5}), operand({6, 5}, Fill::Positive, layout)},
                   {},
                   {1e-2, 0.9, 0.99, 1e-8, 0.0, 0.0, 0.5, 0.5}});
  return all;
}

}  // namespace

extern const OpDecl op_adam_step{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_ELEMENTWISE, .op_id = TN_OPID_ADAM_STEP, .version = 1, .n_in = 4, .n_out = 3, .name = "adam_step",
            .infer = infer, .expand = expand, .cost = cost_elements<16>},
    .summary = "One step of Adam; of AdamW with the decoupled decay.",
    .formula = "p *= 1 - lr * decoupled; g += coupled * p; m' = b1 m + (1 - b1) g; v' = b2 v + (1 - b2) g g; "
               "p' = p - lr / c1 * m' / (sqrt(v') / sqrt(c2) + epsilon)",
    .semantics = "Push: lr, beta1, beta2, epsilon, coupled decay, decoupled decay, c1 = 1 - beta1^t, c2 = 1 - beta2^t. epsilon stands outside the "
                 "root. Outputs may be the inputs. Narrow types compute in f32 and store narrow.",
    .example = "f32[10] f32[10] f32[10] f32[10]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 32};

}  // namespace tenon::ops
