// What tensors offer of gradients: leaves, modes, hooks.
#include "framework/autograd/node.h"

namespace tenon {
using namespace detail;

bool grad_enabled() { return thread().grad_enabled; }
bool set_grad_enabled(bool on) { return std::exchange(thread().grad_enabled, on); }

bool Tensor::requires_grad() const { return impl_ != nullptr && impl_->node != nullptr; }
bool Tensor::is_leaf() const { return impl_ == nullptr || impl_->node == nullptr || impl_->node->kind == NodeKind::Leaf; }

Tensor& Tensor::set_requires_grad(bool on, Where where) {
  require_defined(*this, "set_requires_grad", "this", where);
  if (!is_leaf())
    raise(TN_E_STATE, error::id(error::kGrad, 13), where, "set_requires_grad", "only a leaf can be told whether it requires a gradient",
          type_text() + " was computed by " + impl_->node->name, "use detach() to cut it off, or set it on the inputs");
  if (!on) {
    if (impl_->node != nullptr) release_node(std::exchange(impl_->node, nullptr));
    return *this;
  }
  if (impl_->node != nullptr) return *this;
  if (!is_float(dtype()))
    raise(TN_E_DTYPE, error::id(error::kGrad, 14), where, "set_requires_grad", "only floating tensors have gradients",
          "the tensor is " + type_text(), "convert it first: x.to(tenon::f32)");
  Node* leaf = new_node(thread(), 0, 0);
  leaf->kind = NodeKind::Leaf;
  leaf->device = impl_->device;
  leaf->type = impl_->type;
  leaf->name = "leaf";
  impl_->node = leaf;
  impl_->output = 0;
  return *this;
}

namespace {
struct Locked {
  explicit Locked(Node& n) : node(n) { while (n.lock.test_and_set(std::memory_order_acquire)) {} }
  ~Locked() { node.lock.clear(std::memory_order_release); }
  Node& node;
};
}  // namespace

Tensor Tensor::grad() const {
  if (impl_ == nullptr || impl_->node == nullptr || impl_->node->kind != NodeKind::Leaf) return {};
  Locked lock(*impl_->node);
  TensorImpl* g = impl_->node->grad;
  if (g == nullptr) return {};
  g->refs.fetch_add(1, std::memory_order_relaxed);
  return adopt(g);
}

void Tensor::set_grad(const Tensor& g, Where where) {
  require_defined(*this, "set_grad", "this", where);
  if (impl_->node == nullptr && !g.defined()) return;
  if (impl_->node == nullptr || impl_->node->kind != NodeKind::Leaf)
    raise(TN_E_STATE, error::id(error::kGrad, 15), where, "set_grad", "only a leaf that requires a gradient holds one",
          type_text() + (impl_->node ? std::string(" was computed by ") + impl_->node->name : std::string(" does not require a gradient")),
          "call set_requires_grad(true) on it first");
  Tensor held = g.defined() ? g.detach() : Tensor();
  Locked lock(*impl_->node);
  const Tensor before = adopt(std::exchange(impl_->node->grad, held.leak()));
}

void Tensor::set_data(const Tensor& data, Where where) {
  require_defined(*this, "set_data", "this", where);
  require_defined(data, "set_data", "data", where);
  if (impl_ == data.impl_) return;
  if (!is_leaf())
    raise(TN_E_STATE, error::id(error::kGrad, 13), where, "set_data", "only a leaf can take over other memory",
          type_text() + " was computed by " + impl_->node->name, "use detach() to cut it off");
  tn_tensor_retain(data.impl_->handle);
  tn_tensor_release(impl_->handle);
  impl_->handle = data.impl_->handle;
  impl_->type = data.impl_->type;
  impl_->device = data.impl_->device;
  impl_->meta_state.store(0, std::memory_order_release);
  if (impl_->node == nullptr) return;
  set_grad({});  // it belongs to the old type and device
  impl_->node->device = impl_->device;
  impl_->node->type = impl_->type;
}

void add_hook(const Tensor& t, std::unique_ptr<GradientHook> hook, Where where) {
  require_defined(t, "add_hook", "t", where);
  if (t.impl()->node == nullptr)
    raise(TN_E_STATE, error::id(error::kGrad, 5), where, "add_hook", "there is no history to follow",
          t.type_text() + " does not require a gradient", "call set_requires_grad(true) first");
  HookList** end = &extra(*t.impl()->node).hooks;
  while (*end != nullptr) end = &(*end)->next;
  *end = new HookList{t.impl()->output, std::move(hook), nullptr};
}

}  // namespace tenon
