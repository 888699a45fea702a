// One step of stochastic gradient descent, with momentum or without.
#include "ops/optimizer/step_tools.h"

namespace tenon::ops {
namespace {

enum Slot : uint32_t { kRate, kMomentum, kDecay, kDampening, kNesterov, kSlots };

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  static constexpr const char* kOperands[] = {"p", "g", "momentum buffer"};
  if (tn_status s = infer_step("sgd_step", kOperands, op, dims, out, d); s != TN_OK) return s;
  if (op->n_out > 1 && op->type[2].dtype == 0) out[1] = tn_type{};  // no buffer came in, none goes out
  return TN_OK;
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const bool buffered = e.has(2);
  ProgramBuilder p(e.self().type[0].dtype);
  p.reserve_slots(kSlots);
  const auto w = p.input(0), g = p.op(TN_OP_ADD, p.input(1), p.op(TN_OP_MUL, p.slot(kDecay), w));
  std::vector<Value> in{e.in(0), e.in(1)};
  auto direction = g, buffer = g;
  if (buffered) {
    in.push_back(e.in(2));
    const auto fresh = p.op(TN_OP_MUL, p.op(TN_OP_SUB, p.constant(1), p.slot(kDampening)), g);
    buffer = p.op(TN_OP_ADD, p.op(TN_OP_MUL, p.slot(kMomentum), p.input(2)), fresh);
    const auto ahead = p.op(TN_OP_ADD, g, p.op(TN_OP_MUL, p.slot(kMomentum), buffer));
    direction = p.op(TN_OP_SELECT, p.op(TN_OP_NE, p.slot(kNesterov), p.constant(0)), ahead, buffer);
  }
  p.output(p.op(TN_OP_SUB, w, p.op(TN_OP_MUL, p.slot(kRate), direction)));
  if (buffered) p.output(buffer);
  const std::vector<Value> out = pointwise_outputs(e, p, in, buffered ? 2 : 1);
  for (uint32_t i = 0; i < out.size() && i < e.self().n_out; ++i) e.result(i, out[i]);
  return e.status();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Dims& dims : step_dims()) {
    all.push_back({{operand(dims), operand(dims), operand(dims)}, {}, {0.1, 0.9, 0.01, 0.0, 0.0}});
    all.push_back({{operand(dims), operand(dims), operand(dims)}, {}, {0.1, 0.9, 0.01, 0.1, 1.0}});
    all.push_back({{operand(dims), operand(dims), absent_operand()}, {}, {0.1, 0.0, 0.01, 0.0, 0.0}});
  }
  for (Layout layout : {Layout::Permuted, Layout::Gapped})
    all.push_back({{operand({6, 5}, Fill::Normal, layout), operand({6, 5}), operand({6, 5}, Fill::Normal, layout)}, {}, {0.1, 0.9, 0.0, 0.0, 1.0}});
  return all;
}

}  // namespace

extern const OpDecl op_sgd_step{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_ELEMENTWISE, .op_id = TN_OPID_SGD_STEP, .version = 1, .n_in = 3, .n_out = 2, .name = "sgd_step",
            .infer = infer, .expand = expand, .cost = cost_elements<8>},
    .summary = "One step of stochastic gradient descent.",
    .formula = "g += decay * p; buffer' = momentum * buffer + (1 - dampening) * g; d = nesterov ? g + momentum * buffer' : buffer'; p' = p - lr * d",
    .semantics = "Push: lr, momentum, weight decay, dampening, nesterov (0 or 1). Without a buffer d = g, and output 1 is absent (one output is enough). "
                 "For a first step that ignores dampening start from a zero buffer with dampening 0. Outputs may be the inputs.",
    .example = "f32[10] f32[10] f32[10]",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 4};

}  // namespace tenon::ops
