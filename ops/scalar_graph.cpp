// ops/scalar_graph.cpp - nodes, shared where equal.
#include "ops/scalar_graph.h"

#include <algorithm>

#include "ops/emit.h"
#include "ops/op.h"

namespace tenon::ops {

uint32_t operand_count(uint32_t opcode) {
  switch (opcode) {
#define ROW_(name, code, operands, e32, e64, meaning) \
  case code: return operands;
    TN_OPCODES(ROW_)
#undef ROW_
    default: return 0;
  }
}

ScalarGraph::Id ScalarGraph::add(const ScalarNode& node) {
  const auto same = std::find(nodes_.begin(), nodes_.end(), node);
  if (same != nodes_.end()) return static_cast<Id>(same - nodes_.begin());
  nodes_.push_back(node);
  return static_cast<Id>(nodes_.size() - 1);
}

ScalarGraph::Id ScalarGraph::literal(double value, uint32_t dtype) {
  ScalarNode n{TN_OP_CONST, static_cast<uint8_t>(dtype), TN_NONE};
  n.bits = tenon::ops::literal(value, dtype).bits;
  return add(n);
}

namespace {

uint8_t result_type(uint32_t opcode, uint32_t operand) {
  const bool comparison = opcode >= TN_OP_LT && opcode <= TN_OP_NE;
  return static_cast<uint8_t>(comparison || opcode == TN_OP_ISNAN ? uint32_t{TN_BOOL} : operand);
}

}  // namespace

ScalarGraph::Id ScalarGraph::op(uint32_t opcode, Id a) {
  return add({static_cast<uint8_t>(opcode), result_type(opcode, type_of(a)), a});
}

ScalarGraph::Id ScalarGraph::op(uint32_t opcode, Id a, Id b) {
  return add({static_cast<uint8_t>(opcode), result_type(opcode, type_of(a)), a, b});
}

ScalarGraph::Id ScalarGraph::op(uint32_t opcode, Id a, Id b, Id c) {
  return add({static_cast<uint8_t>(opcode), static_cast<uint8_t>(type_of(opcode == TN_OP_SELECT ? b : a)), a, b, c});
}

ScalarGraph::Id ScalarGraph::cast(Id a, uint32_t dtype) {
  // Widening a float and narrowing it again gives the same value.
  const ScalarNode& n = nodes_[a];
  const bool widened = n.op == TN_OP_CAST && is_float(n.type) && is_float(dtype) && dtype_bits(n.type) > dtype_bits(dtype);
  if (widened && type_of(n.a) == dtype) return n.a;
  return type_of(a) == dtype ? a : add({TN_OP_CAST, static_cast<uint8_t>(dtype), a});
}

std::vector<ScalarGraph::Id> ScalarGraph::inline_program(const tn_program& p, std::span<const Id> input_values) {
  std::vector<Id> value(p.n_inst);
  for (uint32_t i = 0; i < p.n_inst; ++i) {
    const tn_inst& inst = p.inst[i];
    const uint32_t n = operand_count(inst.op);
    if (inst.op == TN_OP_INPUT) {
      value[i] = input_values[inst.a];
      continue;
    }
    ScalarNode node{inst.op, inst.type, inst.a, inst.b, inst.c};
    if (n > 0) node.a = value[inst.a];
    node.b = n > 1 ? value[inst.b] : 0;
    if (n > 2) node.c = value[inst.c];
    else if (inst.op != TN_OP_PHILOX) node.c = 0;  // PHILOX's third operand is a literal
    value[i] = add(node);
  }
  return value;
}

}  // namespace tenon::ops
