// Custom functions.
#include "framework/autograd/node.h"

namespace tenon {
using namespace detail;

// One saved value: input i, the output, or a value of the function's own (`own`), whose history is not known.
struct Function::State {
  enum Kind { kInput, kOutput, kOwn };
  struct Item { Kind kind = kOwn; uint32_t input = 0; Tensor own; };
  std::vector<Tensor> pending;   // as given to save(), during forward
  std::vector<Item> items;
  std::vector<uint64_t> writes;  // versions of own values
  std::vector<Tensor> current;   // what saved() gives during backward
};

struct FunctionAccess {
  using State = Function::State;
  static Function::State& state(Function& f) {
    if (!f.state_) f.state_ = std::make_unique<Function::State>();
    return *f.state_;
  }
};

Function::Function() = default;
Function::~Function() = default;
void Function::save(const Tensor& t) { FunctionAccess::state(*this).pending.push_back(t); }
const Tensor& Function::saved(size_t i) const { return state_->current.at(i); }

Tensor apply(std::unique_ptr<Function> f, std::span<const Tensor> inputs, Where where) {
  for (const Tensor& t : inputs) require_defined(t, f->name(), "of the list", where);
  Tensor out;
  {
    NoGrad off;
    out = f->forward(inputs);
  }
  require_defined(out, f->name(), "result", where);
  ThreadState& ts = thread();
  bool wanted = false;
  for (const Tensor& t : inputs) wanted = wanted || t.requires_grad();
  if (!wanted || !ts.grad_enabled) return out;
  for (const Tensor& t : inputs) if (out.is(t)) out = out.detach();  // an identity must not change its input's history

  FunctionAccess::State& state = FunctionAccess::state(*f);
  Node* n = new_node(ts, static_cast<uint32_t>(inputs.size()), 1);
  n->kind = NodeKind::Custom;
  n->name = f->name();
  n->where = where;
  n->device = out.impl()->device;
  for (uint32_t i = 0; i < n->n_in; ++i) {
    TensorImpl* x = inputs[i].impl();
    n->types[i] = x->type;
    n->edges[i] = {x->node ? retain_node(x->node) : nullptr, x->output};
    if (x->node) n->need |= uint64_t{1} << i, n->depth = std::max(n->depth, x->node->depth);
  }
  n->depth += 1;
  n->types[n->n_in] = out.impl()->type;
  auto hold = [n](uint32_t slot, const Tensor& t) {
    if (n->saved[slot].handle) return;
    tn_tensor_retain(t.handle());
    n->saved[slot] = {t.handle(), writes_of(t.handle())};
  };
  for (const Tensor& t : state.pending) {
    FunctionAccess::State::Item item;
    for (uint32_t i = 0; i < n->n_in && item.kind == FunctionAccess::State::kOwn; ++i)
      if (inputs[i].handle() == t.handle()) item = {FunctionAccess::State::kInput, i, {}}, hold(i, t);
    if (item.kind == FunctionAccess::State::kOwn && out.handle() == t.handle()) item = {FunctionAccess::State::kOutput, 0, {}}, hold(n->n_in, t);
    if (item.kind == FunctionAccess::State::kOwn) item.own = t.detach();
    state.writes.push_back(item.own.defined() ? item.own.version() : 0);
    state.items.push_back(std::move(item));
  }
  state.pending.clear();
  extra(*n).function = std::move(f);
  attach(out.impl(), n, 0);
  release_node(n);
  return out;
}

}  // namespace tenon

namespace tenon::detail {
namespace {

Tensor rebuild(Node& n, uint32_t slot, Node* node, uint32_t output) {
  const Saved& s = n.saved[slot];
  if (writes_of(s.handle) != s.writes)
    raise(TN_E_STATE, error::id(error::kGrad, 1), n.where, n.name, "a value kept for the gradient was overwritten",
          format("%s, %s, was kept at version %llu and is now at version %llu", slot < n.n_in ? "an input" : "the output",
                 type_text(n.device->runtime, n.types[slot]).c_str(), static_cast<unsigned long long>(s.writes),
                 static_cast<unsigned long long>(writes_of(s.handle))),
          "write after backward, or write to a clone()");
  tn_tensor_retain(s.handle);
  TensorImpl* impl = new_impl(thread(), s.handle, n.device);
  if (node != nullptr) attach(impl, node, output);
  return adopt(impl);
}

}  // namespace

std::vector<Tensor> call_function(Node& n, const Tensor& gradient, bool create_graph) {
  Function& f = *n.extra->function;
  FunctionAccess::State& state = FunctionAccess::state(f);
  // Values of the graph kept here after an error would hold the node that holds this function, and shift the next ones.
  struct Clear { std::vector<Tensor>& v; ~Clear() { v.clear(); } } clear{state.current};
  for (size_t k = 0; k < state.items.size(); ++k) {
    const auto& item = state.items[k];
    if (item.kind == FunctionAccess::State::kInput) {
      state.current.push_back(rebuild(n, item.input, create_graph ? n.edges[item.input].node : nullptr, n.edges[item.input].index));
    } else if (item.kind == FunctionAccess::State::kOutput) {
      state.current.push_back(rebuild(n, n.n_in, create_graph ? &n : nullptr, 0));
    } else {
      if (create_graph)
        raise(TN_E_STATE, error::id(error::kGrad, 6), n.where, n.name, "a second derivative would miss part of the function",
              format("saved value %zu, %s, is neither an input nor the output, so its dependence on the inputs is unknown", k,
                     item.own.type_text().c_str()),
              "save inputs or the output and compute the value again in backward");
      if (item.own.version() != state.writes[k])
        raise(TN_E_STATE, error::id(error::kGrad, 1), n.where, n.name, "a value kept for the gradient was overwritten",
              format("saved value %zu, %s, was kept at version %llu and is now at version %llu", k, item.own.type_text().c_str(),
                     static_cast<unsigned long long>(state.writes[k]), static_cast<unsigned long long>(item.own.version())),
              "write after backward, or write to a clone()");
      state.current.push_back(item.own);
    }
  }
  return f.backward(gradient);
}

}  // namespace tenon::detail
