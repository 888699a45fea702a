// kernel/graph.h - the builder: a flat list of nodes over numbered values. Rules (expand, vjp) and apps write into it.
//
// A value is an input, a constant, or an output of one node. Types are inferred when a node is added, so a graph is always
// well typed. Threads: one at a time.
#pragma once
#include <tenon/runtime.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/attr_table.h"
#include "kernel/dims.h"
#include "kernel/layouts.h"
#include "kernel/op_table.h"

namespace tenon::kernel {

class Runtime;

struct Node {
  const OpEntry* op = nullptr;
  AttrRef attrs;
  uint32_t math_flags = 0;
  std::vector<uint32_t> in, out;  // TN_NONE = absent operand
  std::vector<tn_push> push;
  std::string note;
};

struct GraphValue {
  tn_type type{};
  uint32_t node = TN_NONE;    // TN_NONE: input or constant
  uint32_t constant = TN_NONE;  // index of the constant's bytes
  uint32_t input = TN_NONE;
  uint32_t alias = TN_NONE;     // another name of that value (derivatives of f(x, x) need two names for x)
};

// What infer, view, cost and kernels see of a node: a tn_op with its own storage.
class OpView {
 public:
  OpView(const OpEntry& op, const AttrSet& attrs, std::span<const tn_type> in, std::span<const tn_type> out, uint32_t push_bytes,
         uint32_t math_flags);
  const tn_op& op() const { return op_; }
  std::span<tn_type> types() { return types_; }

 private:
  std::vector<tn_type> types_;
  tn_op op_{};
};

}  // namespace tenon::kernel

// The opaque type of the C API.
struct tn_builder {
  explicit tn_builder(tenon::kernel::Runtime& rt) : runtime(rt) {}
  tenon::kernel::Runtime& runtime;
  std::vector<tenon::kernel::GraphValue> values;
  std::vector<tenon::kernel::Node> nodes;
  std::vector<uint32_t> inputs, outputs;
  std::vector<std::unique_ptr<std::vector<char>>> constants;
  std::string note;
  tn_status sticky = TN_OK;
  // Read-back storage of tn_builder_node.
  tn_emit shown{};
  tenon::kernel::ConcreteDims numbers;
  tn_dims dims_table{};

  uint32_t add_value(const tn_type& type, uint32_t node);
  uint32_t add_input(const tn_type& type);
  uint32_t add_alias(uint32_t value);
  uint32_t root(uint32_t value) const;  // through aliases
  // Adds a node of any op, derived ones too. Infers output types.
  tn_status add_node(const tenon::kernel::OpEntry& op, tenon::kernel::AttrRef attrs, uint32_t math_flags, std::span<const uint32_t> in,
                     std::span<const tn_push> push, uint32_t n_out, uint32_t* out, tn_diag* diag);
};

namespace tenon::kernel {

// Output types of an op; for derived ops the types of the wanted results. Sets space and alignment. Numbers or symbols.
// An operand of an opaque layout has no views and no derivative: their rules would read it as if it were strided.
tn_status check_opaque(const OpEntry& op, std::span<const tn_type> in, tn_diag* diag);
tn_status infer_types(const OpEntry& op, const AttrSet& attrs, std::span<const tn_type> in, uint32_t push_bytes, uint32_t math_flags,
                      uint32_t n_out, std::vector<tn_type>* out, const OpTable& ops, const tn_dims* dims, tn_diag* diag);

// The same over numbers only; also checks that the results are types that can exist.
tn_status infer_concrete(const OpEntry& op, const AttrSet& attrs, std::span<const tn_type> in, uint32_t push_bytes, uint32_t math_flags,
                         uint32_t n_out, std::vector<tn_type>* out, const OpTable& ops, tn_diag* diag);

// Writes what `op`, which can_expand, computes as other nodes: its expand, or for a derived op its rule. result[i] may be
// TN_NONE (zero).
tn_status expand_into(tn_builder* g, const OpEntry& op, const AttrRef& attrs, uint32_t math_flags, std::span<const uint32_t> in,
                      std::span<const uint32_t> out, uint32_t push_bytes, std::span<uint32_t> result, tn_diag* diag);
bool can_expand(const OpEntry& op);

// Operand counts of a derived op's base, given the derived op's inputs.
struct DerivedShape {
  uint32_t base_in, base_out, seeds;
};
bool derived_shape(const OpEntry& op, const AttrSet& attrs, uint32_t n_in, const OpTable& ops, DerivedShape* out);

}  // namespace tenon::kernel
