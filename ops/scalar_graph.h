// ops/scalar_graph.h - scalar expressions without the limits of a tn_program, and cutting them into programs.
//
//   ScalarGraph g;                                  // equal expressions are one node
//   auto x = g.input(0, TN_F32);
//   auto y = g.op(TN_OP_MUL, x, x);
//   std::vector<ProgramPart> parts = cut(g, {{y}}, 1, TN_NONE);   // one program with one output
//
// Leaves are numbered inputs (what stands behind a number is the caller's business), push slots of the op at hand, and
// literals. Pure data; one thread at a time.
#pragma once
#include <tenon/types.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tenon::ops {

struct ScalarNode {
  uint8_t op = 0, type = 0;
  uint32_t a = 0, b = 0, c = 0;  // nodes; INPUT, INDEX: number in a; CONST: slot in a, or TN_NONE for a literal
  uint64_t bits = 0;             // of a literal
  bool operator==(const ScalarNode&) const = default;
};

class ScalarGraph {
 public:
  using Id = uint32_t;
  Id input(uint32_t number, uint32_t dtype) { return add({TN_OP_INPUT, static_cast<uint8_t>(dtype), number}); }
  Id slot(uint32_t k, uint32_t dtype) { return add({TN_OP_CONST, static_cast<uint8_t>(dtype), k}); }
  Id literal(double value, uint32_t dtype);
  Id op(uint32_t opcode, Id a);
  Id op(uint32_t opcode, Id a, Id b);
  Id op(uint32_t opcode, Id a, Id b, Id c);
  Id cast(Id a, uint32_t dtype);  // `a` itself when it has that type
  // Copies a program in; its input k becomes the value input_values[k], of the same type. Returns all its values.
  std::vector<Id> inline_program(const tn_program& p, std::span<const Id> input_values);
  const ScalarNode& node(Id v) const { return nodes_[v]; }
  uint32_t type_of(Id v) const { return nodes_[v].type; }
  size_t size() const { return nodes_.size(); }
  Id add(const ScalarNode& node);

 private:
  std::vector<ScalarNode> nodes_;
};

uint32_t operand_count(uint32_t opcode);  // operands that are values

// One program of a cut. Inputs are numbers: those of the graph below `first_part_value`, and from there on values that
// earlier parts computed, in order of their making.
struct ProgramPart {
  std::vector<tn_inst> inst;
  std::vector<uint16_t> out;
  std::vector<uint32_t> in;
  std::vector<tn_push> push;
  std::vector<uint32_t> target;  // per output: which target it is, or TN_NONE for a value of later parts
  bool uses_index = false;
  tn_program program() const;  // borrows inst
};

struct CutTarget {
  ScalarGraph::Id value;
  bool alone = false;  // in a program of its own, as reduce needs
};

// Cuts the graph into programs within the limits of types.h that compute the targets; nothing that no target needs is
// computed. A part that uses INDEX also gets `full_input` (unless TN_NONE), so that its output has the full dims.
std::vector<ProgramPart> cut(const ScalarGraph& graph, std::span<const CutTarget> targets, uint32_t first_part_value,
                             uint32_t full_input);

}  // namespace tenon::ops
