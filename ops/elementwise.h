// ops/elementwise.h - named elementwise ops: a scalar program per element type, one shape rule, one expansion.
//
//   Id body(ProgramBuilder& p, const Id* x, const tn_op&) { return p.op(TN_OP_NEG, x[0]); }
//   constexpr Elementwise kRule{"neg", kNumbers, 0, body};
//   extern const OpDecl op_neg{.def = elementwise_def(TN_OPID_NEG, 1, &kRule), ...};
//
// The gradient comes from the expansion (pointwise differentiates its program), unless the op gives a better one.
#pragma once
#include "ops/cases.h"
#include "ops/declare.h"
#include "ops/emit.h"

namespace tenon::ops {

struct Elementwise {
  const char* name;
  uint64_t dtypes;                // of the operands
  uint32_t result;                // dtype of the output; 0 = the operands'
  // x: the operands in the compute type (an absent one is push slot 0). Returns the output's value in the compute type.
  ProgramBuilder::Id (*body)(ProgramBuilder& p, const ProgramBuilder::Id* x, const tn_op& op);
  bool condition = false;         // operand 0 is bool whatever the others are
};

tn_status elementwise_infer(void* rule, const tn_op*, const tn_dims*, tn_type* out, tn_diag*);
tn_status elementwise_expand(void* rule, tn_builder*, const tn_rule*, tn_diag*);
tn_status elementwise_cost(void* rule, const tn_op*, tn_cost* out, tn_diag*);

constexpr tn_op_def elementwise_def(uint32_t op_id, uint16_t n_in, const Elementwise* rule, tn_rule_fn vjp = nullptr,
                                    const tn_attr_def* attrs = nullptr, uint16_t n_attrs = 0) {
  tn_op_def d{};
  d.size = sizeof(tn_op_def);
  d.flags = TN_DEF_ELEMENTWISE;
  d.op_id = op_id;
  d.version = 1;
  d.n_in = n_in;
  d.n_out = 1;
  d.n_attr_defs = n_attrs;
  d.name = rule->name;
  d.attr_defs = attrs;
  d.infer = elementwise_infer;
  d.expand = elementwise_expand;
  d.vjp = vjp;
  d.cost = elementwise_cost;
  d.ctx = const_cast<Elementwise*>(rule);
  return d;
}

// One pointwise node over values of the op being expanded; push slots of the op keep their numbers.
Value emit_pointwise(Emit& e, ProgramBuilder& p, std::initializer_list<Value> in);

// Gradient written in terms of the output y and the seed g, so that a tape keeps y alone.
// body(p, y, g) returns the gradient in the compute type.
template <ProgramBuilder::Id (*body)(ProgramBuilder&, ProgramBuilder::Id y, ProgramBuilder::Id g)>
tn_status vjp_from_output(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  if (!e.needs(0) || !e.seed(0) || !is_float(e.self().type[0].dtype)) return e.status();
  ProgramBuilder p(e.self().type[0].dtype);
  const ProgramBuilder::Id y = p.input(0), g = p.input(1);
  p.output(body(p, y, g));
  e.result(0, emit_pointwise(e, p, {e.out(0), e.seed(0)}));
  return e.status();
}

// 1 / (1 + exp(-x)) without overflow for any x, and with finite derivatives of every order.
ProgramBuilder::Id sigmoid_of(ProgramBuilder& p, ProgramBuilder::Id x);

}  // namespace tenon::ops
