// framework/autograd/node.h - private: one recorded call.
//
// Arrows point from results to what they were made of, never back: a node holds its inputs' nodes and plain memory
// (tn_tensor), no result of its own, so that no cycle can arise. A leaf is a node without inputs.
#pragma once
#include <tenon/autograd/autograd.hpp>

#include "framework/core/state.h"

namespace tenon::detail {

struct Edge { Node* node = nullptr; uint32_t index = 0; };  // owns a count of node
struct Saved { tn_tensor* handle = nullptr; uint64_t writes = 0; };
enum class NodeKind : uint8_t { Call, Leaf, Transfer, Custom };

struct HookList { uint32_t output; std::unique_ptr<GradientHook> hook; HookList* next; };

// Rare parts, made when needed.
struct NodeExtra {
  HookList* hooks = nullptr;
  std::unique_ptr<Function> function;  // Custom
};

struct Node {
  static constexpr uint32_t kEdges = 4, kOperands = 8, kPush = 64, kOutputs = 4;
  std::atomic<uint32_t> refs{1};
  uint32_t depth = 0;               // longest way to a leaf: consumers are always deeper than what they read
  NodeKind kind = NodeKind::Call;
  bool freed = false, is_view = false, no_derivative = false;
  uint8_t useful = 0;               // during grad(): 1 = leads to a wanted tensor, 2 = does not
  uint32_t op = 0, attr = 0, n_in = 0, n_out = 0, push_bytes = 0;
  uint32_t derived = 0;             // op of the derivative for need and seed 0; 0 = ask
  uint64_t need = 0;                // bit per input that wants a gradient
  uint64_t view_version = 0;        // is_view: writes of the memory when the view was taken
  DeviceState* device = nullptr;
  const char* name = "";
  Where where{"", 0};
  Edge* edges = inline_edges;       // n_in
  Saved* saved = inline_saved;      // n_in + n_out; handle NULL: known by type alone
  uint32_t* types = inline_types;   // n_in + n_out; 0 = absent
  std::atomic<uint64_t> owner{0};   // the sweep that is at this node
  TensorImpl* gradient[kOutputs] = {};  // during a sweep
  NodeExtra* extra = nullptr;
  Node* next_free = nullptr;
  // Leaf
  std::atomic_flag lock = ATOMIC_FLAG_INIT;
  TensorImpl* grad = nullptr;       // owned, without history
  uint32_t type = 0;
  Edge inline_edges[kEdges];
  Saved inline_saved[kOperands];
  uint32_t inline_types[kOperands];
  alignas(8) uint8_t push[kPush];
};

Node* new_node(ThreadState& ts, uint32_t n_in, uint32_t n_out);
inline Node* retain_node(Node* n) {
  n->refs.fetch_add(1, std::memory_order_relaxed);
  return n;
}
void free_saved(Node& n);
NodeExtra& extra(Node& n);
void attach(TensorImpl* out, Node* node, uint32_t index);  // out becomes result `index` of node, which it retains
uint64_t writes_of(tn_tensor* handle);
inline bool is_type_only(const tn_tensor* h) { return (reinterpret_cast<uintptr_t>(h) & 1u) != 0; }

// The op that computes the derivative of `op` for these seeds and needs; 0 when it has none (diag says why).
uint32_t derive(ThreadState& ts, RuntimeState* rt, uint32_t op, uint64_t seeds, uint64_t need, tn_diag* diag);

// Backward of a custom function, with its saved values as tensors of the graph.
std::vector<Tensor> call_function(Node& n, const Tensor& gradient, bool create_graph);

}  // namespace tenon::detail
