// The life of tape nodes: pooled per thread, ended without recursion.
#include "framework/autograd/node.h"

namespace tenon::detail {

uint64_t writes_of(tn_tensor* handle) {
  tn_tensor_info info;
  info.size = sizeof info;
  tn_tensor_inspect(handle, &info);
  return info.writes;
}

Node* new_node(ThreadState& ts, uint32_t n_in, uint32_t n_out) {
  Node* n = ts.nodes;
  if (n != nullptr) {
    ts.nodes = n->next_free;
    --ts.n_nodes;
    n->refs.store(1, std::memory_order_relaxed);
  } else {
    n = new Node;
  }
  n->n_in = n_in;
  n->n_out = n_out;
  if (n_in > Node::kEdges) n->edges = new Edge[n_in]{};
  if (n_in + n_out > Node::kOperands) {
    n->saved = new Saved[n_in + n_out]{};
    n->types = new uint32_t[n_in + n_out]{};
  }
  count(ts.live_nodes, 1);
  return n;
}

void free_saved(Node& n) {
  for (uint32_t i = 0; i < n.n_in + n.n_out; ++i)
    if (n.saved[i].handle != nullptr) tn_tensor_release(std::exchange(n.saved[i].handle, nullptr));
}

NodeExtra& extra(Node& n) {
  if (n.extra == nullptr) n.extra = new NodeExtra;
  return *n.extra;
}

namespace {

// Everything a node holds goes; nodes it was the last to hold join `dying`.
void bury(ThreadState& ts, Node* n) {
  free_saved(*n);
  for (uint32_t i = 0; i < n->n_in; ++i) {
    Node* input = std::exchange(n->edges[i].node, nullptr);
    if (input != nullptr && input->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) ts.dying.push_back(input);
  }
  for (TensorImpl*& g : n->gradient)
    if (g != nullptr) const Tensor drop = adopt(std::exchange(g, nullptr));
  if (n->grad != nullptr) const Tensor drop = adopt(std::exchange(n->grad, nullptr));
  if (n->extra != nullptr) {
    for (HookList* h = n->extra->hooks; h != nullptr;) delete std::exchange(h, h->next);
    delete std::exchange(n->extra, nullptr);
  }
  if (n->edges != n->inline_edges) delete[] std::exchange(n->edges, n->inline_edges);
  if (n->saved != n->inline_saved) {
    delete[] std::exchange(n->saved, n->inline_saved);
    delete[] std::exchange(n->types, n->inline_types);
  }
  n->kind = NodeKind::Call;
  n->freed = n->is_view = n->no_derivative = false;
  n->useful = 0;
  n->depth = n->derived = n->n_in = n->n_out = n->push_bytes = 0;
  count(ts.live_nodes, -1);
  if (ts.n_nodes < ThreadState::kPool) {
    n->next_free = ts.nodes;
    ts.nodes = n;
    ++ts.n_nodes;
  } else {
    delete n;
  }
}

}  // namespace

void release_node(Node* node) {
  std::atomic<uint32_t>& refs = node->refs;
  if (refs.load(std::memory_order_acquire) != 1 && refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  ThreadState& ts = thread();
  ts.dying.push_back(node);
  if (ts.burying) return;  // the loop below is further up on this stack
  ts.burying = true;
  while (!ts.dying.empty()) {
    Node* n = ts.dying.back();
    ts.dying.pop_back();
    bury(ts, n);
  }
  ts.burying = false;
}

void drop_node_pool(ThreadState& ts) {
  while (ts.nodes != nullptr) delete std::exchange(ts.nodes, ts.nodes->next_free);
}

void attach(TensorImpl* out, Node* node, uint32_t index) {
  Node* before = out->node;
  out->node = retain_node(node);
  out->output = index;
  if (before != nullptr) release_node(before);
}

}  // namespace tenon::detail

namespace tenon {
int64_t live_nodes() { return detail::live_total(&detail::ThreadState::live_nodes); }
}  // namespace tenon
