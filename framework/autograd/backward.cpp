// The reverse sweep: consumers before producers, one derived op call a node.
#include "framework/autograd/node.h"

#include <algorithm>
#include <unordered_map>

namespace tenon::detail {
namespace {

struct Target { Node* node; uint32_t index; Tensor result; };

class Sweep {
 public:
  Sweep(ThreadState& ts, bool create_graph, bool retain, Where where)
      : ts_(ts), id_(next_id()), create_graph_(create_graph), retain_(retain), where_(where) {}
  ~Sweep() {
    for (Node* n : heap_) abandon(*n);
    for (Node* n : visited_) n->useful = 0;
  }
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;

  void want(const Tensor& t) {
    targets_.push_back({t.impl()->node, t.impl()->output, {}});
    target_nodes_.insert(std::upper_bound(target_nodes_.begin(), target_nodes_.end(), t.impl()->node), t.impl()->node);
  }
  std::vector<Target>& targets() { return targets_; }

  void seed(Node* node, uint32_t index, Tensor g) {
    tn_tensor_info info;
    info.size = sizeof info;
    tn_tensor_inspect(g.handle(), &info);
    storages_.push_back(info.storage);  // the caller's
    give({node, index}, std::move(g));
  }

  void run(std::span<const Tensor> roots) {
    const bool before = std::exchange(ts_.grad_enabled, create_graph_);
    struct Restore { ThreadState& ts; bool value; ~Restore() { ts.grad_enabled = value; } } restore{ts_, before};
    if (!targets_.empty()) mark(roots);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), shallower);
      Node* n = heap_.back();
      heap_.pop_back();
      visit(*n);
    }
    finish_leaves();
  }

 private:
  struct LeafSum { Node* leaf; Tensor sum; };
  static bool shallower(const Node* a, const Node* b) { return a->depth < b->depth; }
  static uint64_t next_id() {
    static std::atomic<uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
  }

  void abandon(Node& n) {
    for (TensorImpl*& g : n.gradient) if (g) const Tensor drop = adopt(std::exchange(g, nullptr));
    n.owner.store(0, std::memory_order_release);
  }

  // Which nodes lead to a wanted tensor; only these are swept. The marks go with the Sweep.
  void mark(std::span<const Tensor> roots);
  bool is_target(const Node* n) const { return std::binary_search(target_nodes_.begin(), target_nodes_.end(), n); }
  // Leaves carry no mark: several threads may be at them.
  bool useful(const Node* n) const {
    return targets_.empty() || (n->kind == NodeKind::Leaf ? is_target(n) : n->useful == 1);
  }

  void give(Edge to, Tensor g) {
    Node& n = *to.node;
    if (n.kind == NodeKind::Leaf) return give_leaf(to.node, std::move(g));
    uint64_t nobody = 0;
    if (n.owner.compare_exchange_strong(nobody, id_, std::memory_order_acq_rel)) {
      heap_.push_back(&n);
      std::push_heap(heap_.begin(), heap_.end(), shallower);
    } else if (nobody != id_) {
      raise(TN_E_BUSY, error::id(error::kGrad, 8), where_, n.name, "two threads differentiate one graph",
            format("the node of %s, recorded at %s, belongs to another sweep", n.name, tenon::to_string(n.where).c_str()),
            "let one thread call backward, or give each thread a graph of its own");
    }
    TensorImpl*& held = n.gradient[to.index];
    if (held == nullptr) held = g.leak();
    else held = add(adopt(std::exchange(held, nullptr)), g, where_).leak();
  }

  void give_leaf(Node* leaf, Tensor g) {
    constexpr size_t kFewLeaves = 16;
    LeafSum* found = nullptr;
    if (leaves_.size() <= kFewLeaves) {
      for (LeafSum& s : leaves_) if (s.leaf == leaf) found = &s;
    } else {
      if (leaf_index_.empty()) for (size_t i = 0; i < leaves_.size(); ++i) leaf_index_[leaves_[i].leaf] = i;
      const auto [at, is_new] = leaf_index_.try_emplace(leaf, leaves_.size());
      if (!is_new) found = &leaves_[at->second];
    }
    if (found != nullptr) found->sum = add(found->sum, g, where_);
    else leaves_.push_back({leaf, std::move(g)});
  }

  void visit(Node& n) {
    Tensor grads[Node::kOutputs];
    uint64_t seeds = 0;
    for (uint32_t j = 0; j < Node::kOutputs; ++j) {
      if (n.gradient[j] == nullptr) continue;
      grads[j] = adopt(std::exchange(n.gradient[j], nullptr));
      seeds |= uint64_t{1} << j;
    }
    n.owner.store(0, std::memory_order_release);
    if (n.extra) run_hooks(n, grads);
    if (!targets_.empty() && !collect(n, grads)) return;
    switch (n.kind) {
      case NodeKind::Call: visit_call(n, grads, seeds); break;
      case NodeKind::Transfer: give(n.edges[0], grads[0].to(device_of(n.device), where_)); break;
      case NodeKind::Custom: visit_custom(n, grads[0]); break;
      case NodeKind::Leaf: break;
    }
    if (!retain_ && !create_graph_) free_saved(n), n.freed = true;
  }

  static void run_hooks(Node& n, Tensor* grads) {
    for (HookList* h = n.extra->hooks; h; h = h->next) {
      if (!grads[h->output].defined()) continue;
      Tensor changed = (*h->hook)(grads[h->output]);
      if (changed.defined()) grads[h->output] = std::move(changed);
    }
  }

  // Takes the wanted gradients of this node; false when nothing before it is wanted.
  bool collect(Node& n, Tensor* grads) {
    for (Target& t : targets_) if (t.node == &n) t.result = grads[t.index];
    for (uint32_t i = 0; i < n.n_in; ++i) if (n.edges[i].node && useful(n.edges[i].node)) return true;
    return false;
  }

  void visit_custom(Node& n, const Tensor& g) {
    if (n.freed) raise_freed(n);
    std::vector<Tensor> results = call_function(n, g, create_graph_);
    if (results.size() != n.n_in)
      raise(TN_E_ARG, error::id(error::kGrad, 9), n.where, n.name, "backward gave the wrong number of gradients",
            format("%zu given, the function has %u inputs", results.size(), n.n_in), "return one per input, undefined where it is zero");
    for (uint32_t i = 0; i < n.n_in; ++i)
      if (n.edges[i].node && results[i].defined() && useful(n.edges[i].node)) give(n.edges[i], std::move(results[i]));
  }

  void visit_call(Node& n, Tensor* grads, uint64_t seeds);
  void check_saved(const Node& n);
  [[noreturn]] void raise_freed(const Node& n) {
    raise(TN_E_STATE, error::id(error::kGrad, 2), where_, n.name, "this graph was already used up by a backward",
          format("what %s at %s had kept was let go to save memory", n.name, tenon::to_string(n.where).c_str()),
          "pass retain_graph = true to the first backward, or run the forward again");
  }
  void finish_leaves();
  // A gradient that a leaf may keep: dense, and its memory no other gradient's, so that writing to one changes no other.
  Tensor own(const Tensor& g) {
    tn_tensor_info info;
    info.size = sizeof info;
    tn_tensor_inspect(g.handle(), &info);
    if (!is_row_major(meta(g.impl())) || std::find(storages_.begin(), storages_.end(), info.storage) != storages_.end())
      return g.detach().clone(where_);
    storages_.push_back(info.storage);
    return g.detach();
  }

  ThreadState& ts_;
  uint64_t id_;
  bool create_graph_, retain_;
  Where where_;
  std::vector<Node*> heap_, visited_, target_nodes_;
  std::unordered_map<Node*, size_t> leaf_index_;  // used above kFewLeaves
  std::vector<LeafSum> leaves_;
  std::vector<uint64_t> storages_;
  std::vector<Target> targets_;
};

void Sweep::mark(std::span<const Tensor> roots) {
  struct Frame { Node* node; uint32_t next; };
  std::vector<Frame> stack;
  auto enter = [&](Node* n) {
    n->useful = is_target(n) ? 1 : 2;
    visited_.push_back(n);
    stack.push_back({n, 0});
  };
  for (const Tensor& r : roots) {
    if (r.impl()->node->kind == NodeKind::Leaf || r.impl()->node->useful != 0) continue;
    enter(r.impl()->node);
    while (!stack.empty()) {
      Frame& f = stack.back();
      if (f.next == f.node->n_in) {
        const uint8_t found = f.node->useful;
        stack.pop_back();
        if (!stack.empty() && found == 1) stack.back().node->useful = 1;
        continue;
      }
      Node* input = f.node->edges[f.next++].node;
      if (input == nullptr) continue;
      if (useful(input)) f.node->useful = 1;
      else if (input->kind != NodeKind::Leaf && input->useful == 0) enter(input);
    }
  }
}

void Sweep::check_saved(const Node& n) {
  for (uint32_t i = 0; i < n.n_in + n.n_out; ++i) {
    const Saved& s = n.saved[i];
    if (s.handle == nullptr) continue;
    const uint64_t now = writes_of(s.handle);
    if (__builtin_expect(now == s.writes, 1)) continue;
    const bool input = i < n.n_in;
    raise(TN_E_STATE, error::id(error::kGrad, 1), n.where, n.name, "a value kept for the gradient was overwritten",
          format("%s %u of %s, %s, was kept at version %llu and is now at version %llu", input ? "input" : "output", input ? i : i - n.n_in,
                 n.name, type_text(n.device->runtime, n.types[i]).c_str(), static_cast<unsigned long long>(s.writes),
                 static_cast<unsigned long long>(now)),
          "write after backward, or write to a clone()");
  }
}

void Sweep::visit_call(Node& n, Tensor* grads, uint64_t seeds) {
  if (n.freed) raise_freed(n);
  uint64_t need = n.need;
  if (!targets_.empty()) {
    for (uint32_t i = 0; i < n.n_in && i < 63; ++i)
      if (n.edges[i].node && !useful(n.edges[i].node)) need &= ~(uint64_t{1} << i);
    if (need == 0) return;
  }
  RuntimeState* rt = n.device->runtime;
  tn_diag diag;
  diag.size = sizeof diag;
  diag.status = TN_OK;
  const uint32_t derived = seeds == 1 && need == n.need && n.derived ? n.derived : derive(ts_, rt, n.op, seeds, need, &diag);
  if (derived == 0) {
    if (diag.status == TN_OK) diag.len = 0;
    raise(diag, diag.status ? diag.status : TN_E_UNSUPPORTED, n.where, n.name, n.device);
  }
  check_saved(n);

  // Operands of the derived op: inputs, outputs, seeds. What was not kept is known by its type.
  constexpr uint32_t kMany = 40;
  In few[kMany];
  std::vector<In> many;
  const uint32_t n_seed = static_cast<uint32_t>(__builtin_popcountll(seeds)), total = n.n_in + n.n_out + n_seed;
  In* in = few;
  if (total > kMany) many.resize(total), in = many.data();
  uint32_t k = 0;
  for (; k < n.n_in + n.n_out; ++k) {
    In& x = in[k];
    x.type = n.types[k];
    x.handle = n.saved[k].handle ? n.saved[k].handle : x.type ? TN_TYPE_ONLY(x.type) : nullptr;
    if (!create_graph_ || x.handle == nullptr || is_type_only(x.handle)) continue;
    if (k < n.n_in) x.node = n.edges[k].node, x.output = n.edges[k].index;
    else x.node = &n, x.output = k - n.n_in;
  }
  for (uint32_t j = 0; j < n.n_out; ++j) {
    if (!(seeds >> j & 1)) continue;
    in[k++] = detail::in(grads[j]);
  }

  // Results come in the order of the inputs that need one; bit 63 stands for input 63 and all after it.
  uint32_t few_wanted[kMany], n_wanted = 0;
  TensorImpl* few_out[kMany];
  std::vector<uint32_t> many_wanted(n.n_in > kMany ? n.n_in : 0);
  std::vector<TensorImpl*> many_out(many_wanted.size());
  uint32_t* wanted = many_wanted.empty() ? few_wanted : many_wanted.data();
  TensorImpl** out = many_out.empty() ? few_out : many_out.data();
  for (uint32_t i = 0; i < n.n_in; ++i)
    if (need >> (i < 63 ? i : 63) & 1) wanted[n_wanted++] = i;
  Call c;
  c.op = derived;
  c.attr = n.attr;
  c.in = in;
  c.n_in = total;
  c.n_out = n_wanted;
  c.push = n.push;
  c.push_bytes = n.push_bytes;
  c.device = n.device;
  c.where = n.where;
  c.name = n.name;
  detail::run(ts_, c, out);
  uint32_t w = 0;
  try {
    while (w < n_wanted) {
      const uint32_t at = w++;
      Tensor g = adopt(out[at]);
      if (g.defined() && n.edges[wanted[at]].node) give(n.edges[wanted[at]], std::move(g));
    }
  } catch (...) {  // results that nobody took yet are given back
    while (w < n_wanted) adopt(out[w++]);
    throw;
  }
}

void Sweep::finish_leaves() {
  struct Unlock { std::atomic_flag& f; ~Unlock() { f.clear(std::memory_order_release); } };
  for (LeafSum& s : leaves_) {
    Node& leaf = *s.leaf;
    Tensor grads[Node::kOutputs] = {s.sum};
    if (leaf.extra) run_hooks(leaf, grads);
    if (!targets_.empty()) {
      for (Target& t : targets_) if (t.node == &leaf) t.result = grads[0];
      continue;
    }
    Tensor g = own(grads[0]).to(device_of(leaf.device), where_);
    while (leaf.lock.test_and_set(std::memory_order_acquire)) {}
    Unlock unlock{leaf.lock};
    if (leaf.grad != nullptr) g = add(adopt(std::exchange(leaf.grad, nullptr)), g, where_);
    leaf.grad = g.leak();
  }
}

Tensor seed_for(const Tensor& output, const Tensor& given, Where where) {
  if (given.defined()) {
    if (given.shape() == output.shape()) return given;
    raise(TN_E_SHAPE, error::id(error::kGrad, 10), where, "backward", "the gradient has another shape than the output",
          format("output %s, gradient %s", output.type_text().c_str(), given.type_text().c_str()), "give a gradient of the output's shape");
  }
  if (output.numel() != 1)
    raise(TN_E_SHAPE, error::id(error::kGrad, 11), where, "backward", "the output is not one number",
          output.type_text() + " has " + std::to_string(output.numel()) + " elements, so its gradient is not defined alone",
          "reduce it first (mean, sum), or pass the gradient to start with");
  return ones_like(output, where);
}

void require_history(const Tensor& t, const char* what, Where where) {
  require_defined(t, "backward", what, where);
  if (t.impl()->node != nullptr) return;
  raise(TN_E_STATE, error::id(error::kGrad, 5), where, "backward", "there is no history to follow",
        format("%s, %s, does not require a gradient and no recorded op made it", what, t.type_text().c_str()),
        "call set_requires_grad(true) on the inputs before the forward, outside of NoGrad");
}

}  // namespace
}  // namespace tenon::detail

namespace tenon {
using namespace detail;

void Tensor::backward(const Tensor& gradient, bool retain_graph, Where where) const {
  require_history(*this, "the output", where);
  ThreadState& ts = thread();
  Sweep sweep(ts, false, retain_graph, where);
  Tensor g;
  {
    NoGrad off;
    g = seed_for(*this, gradient, where);
  }
  sweep.seed(impl_->node, impl_->output, std::move(g));
  sweep.run({this, 1});
}

std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs, std::span<const Tensor> grad_outputs,
                         GradOptions options, Where where) {
  ThreadState& ts = thread();
  Sweep sweep(ts, options.create_graph, options.retain_graph, where);
  for (const Tensor& t : inputs) {
    require_history(t, "an input", where);
    sweep.want(t);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    require_history(outputs[i], "an output", where);
    Tensor g;
    {
      NoGrad off;
      g = seed_for(outputs[i], i < grad_outputs.size() ? grad_outputs[i] : Tensor(), where);
    }
    sweep.seed(outputs[i].impl()->node, outputs[i].impl()->output, std::move(g));
  }
  sweep.run(outputs);
  std::vector<Tensor> results;
  for (Target& t : sweep.targets()) {
    if (!t.result.defined() && !options.allow_unused)
      raise(TN_E_ARG, error::id(error::kGrad, 12), where, "grad", "an output does not depend on an input",
            format("input %zu of %zu has no way to any of the %zu outputs", results.size(), inputs.size(), outputs.size()),
            "take the input out, or set allow_unused to get an undefined tensor");
    results.push_back(std::move(t.result));
  }
  return results;
}
Tensor grad(const Tensor& output, const Tensor& input, GradOptions options, Where where) {
  return grad(std::span<const Tensor>(&output, 1), std::span<const Tensor>(&input, 1), {}, options, where)[0];
}
std::vector<Tensor> grad(const Tensor& output, const std::vector<Tensor>& inputs, GradOptions options, Where where) {
  return grad(std::span<const Tensor>(&output, 1), inputs, {}, options, where);
}

}  // namespace tenon
