// ops/elementwise.cpp - see elementwise.h.
#include "ops/elementwise.h"

#include "ops/program_rules.h"

namespace tenon::ops {
namespace {

// Operands that are written by the same type rule: all present ones but a condition.
uint32_t first_operand(const Elementwise& rule, const tn_op* op) {
  for (uint32_t i = rule.condition; i < op->n_in; ++i)
    if (op->type[i].dtype) return i;
  return op->n_in;
}

tn_status check_types(const Elementwise& rule, const tn_op* op, tn_diag* diag) {
  const uint32_t first = first_operand(rule, op);
  if (first == op->n_in)
    return fail(diag, TN_E_ARG, error_id(kArg, 3), "%s: every operand is absent\nwhy: one operand has to give the shape\n"
                "try: pass a tensor for one of them", rule.name);
  const tn_type& t = op->type[first];
  if ((rule.dtypes >> t.dtype & 1) == 0)
    return fail(diag, TN_E_DTYPE, error_id(kDtype, 3), "%s is not defined for %s\nwhy: operand %u is %s\n"
                "try: cast it to a type that the op takes, e.g. %s", rule.name, dtype_name(t.dtype), first,
                type_text(t).c_str(), (rule.dtypes & mask(TN_F32)) ? "f32" : "bool");
  for (uint32_t i = first + 1; i < op->n_in; ++i)
    if (op->type[i].dtype && op->type[i].dtype != t.dtype)
      return fail(diag, TN_E_DTYPE, error_id(kDtype, 1), "%s: element types differ\nwhy: operand %u is %s, operand %u is %s\n"
                  "try: cast one of them, e.g. operand %u to %s", rule.name, first, type_text(t).c_str(), i,
                  type_text(op->type[i]).c_str(), i, dtype_name(t.dtype));
  if (rule.condition && op->type[0].dtype != TN_BOOL)
    return fail(diag, TN_E_DTYPE, error_id(kDtype, 4), "%s: the condition is not bool\nwhy: operand 0 is %s\n"
                "try: compare it with 0 first", rule.name, type_text(op->type[0]).c_str());
  return TN_OK;
}

void write_program(const Elementwise& rule, const tn_op& op, ProgramBuilder* p) {
  p->reserve_slots(op.push_bytes / 8);
  ProgramBuilder::Id x[3] = {};
  uint32_t number = 0;
  for (uint32_t i = 0; i < op.n_in && i < 3; ++i)
    x[i] = op.type[i].dtype ? p->input(number++, op.type[i].dtype) : p->slot(0);
  p->output(rule.body(*p, x, op), op.type[op.n_in].dtype);
}

}  // namespace

tn_status elementwise_infer(void* rule_ptr, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* diag) {
  const Elementwise& rule = *static_cast<const Elementwise*>(rule_ptr);
  tn_status s = check_types(rule, op, diag);
  if (s != TN_OK) return s;
  tn_type t{};
  s = broadcast(op, dims, &t, diag);
  if (s != TN_OK) return s;
  t.dtype = static_cast<uint8_t>(rule.result ? rule.result : op->type[first_operand(rule, op)].dtype);
  *out = t;
  return TN_OK;
}

tn_status elementwise_expand(void* rule_ptr, tn_builder* b, const tn_rule* r, tn_diag* d) {
  const Elementwise& rule = *static_cast<const Elementwise*>(rule_ptr);
  Emit e(b, r, d);
  const tn_op& op = e.self();
  ProgramBuilder p(op.type[first_operand(rule, &op)].dtype);
  write_program(rule, op, &p);
  std::vector<Value> in;
  for (uint32_t i = 0; i < op.n_in; ++i)
    if (e.has(i)) in.push_back(e.in(i));
  const Attr program = Attr::program(TN_KEY_PROGRAM, p.finish());
  e.result(0, e.ops(TN_OPID_POINTWISE, in, {&program, 1}, p.literals(), 1)[0]);
  return e.status();
}

tn_status elementwise_cost(void* rule_ptr, const tn_op* op, tn_cost* out, tn_diag*) {
  const Elementwise& rule = *static_cast<const Elementwise*>(rule_ptr);
  ProgramBuilder p(op->type[first_operand(rule, op)].dtype);
  write_program(rule, *op, &p);
  out->bound = TN_BOUND_MEMORY;
  out->flops = arithmetic_count(*p.finish()) * element_count(op->type[op->n_in]);
  out->bytes = traffic(*op);
  return TN_OK;
}

Value emit_pointwise(Emit& e, ProgramBuilder& p, std::initializer_list<Value> in) {
  const Attr program = Attr::program(TN_KEY_PROGRAM, p.finish());
  return e.ops(TN_OPID_POINTWISE, std::span(in.begin(), in.size()), {&program, 1}, p.literals(), 1)[0];
}

ProgramBuilder::Id sigmoid_of(ProgramBuilder& p, ProgramBuilder::Id x) {
  const ProgramBuilder::Id negative = p.op(TN_OP_LT, x, p.constant(0)), one = p.constant(1);
  // exp(-|x|), but by a select, so that the derivative at 0 is that of the side taken.
  const ProgramBuilder::Id e = p.op(TN_OP_EXP, p.op(TN_OP_SELECT, negative, x, p.op(TN_OP_NEG, x)));
  return p.op(TN_OP_DIV, p.op(TN_OP_SELECT, negative, e, one), p.op(TN_OP_ADD, one, e));
}

}  // namespace tenon::ops
