// tenon/autograd/autograd.hpp - gradients in reverse mode.
//
//   Tensor w = randn({3}, {.requires_grad = true});
//   Tensor loss = sum(square(w));
//   loss.backward();                                         // w.grad() is 2 w
//   Tensor g = grad(sum(w * w * w), w, {.create_graph = true});
//   Tensor gg = grad(sum(g), w);                             // 6 w: derivatives are ops, so they derive again
//   { NoGrad off; w.add_(w.grad() * -0.1); }                 // nothing is recorded in here
//
// The tape keeps of each call exactly what its derivative reads. A kept value that was written since is an error
// (TN-GRAD-001), never a wrong gradient. Gradients that backward() stores carry no history, so no cycle can arise.
// Conventions at kinks: relu'(0) = 0, abs'(0) = 0, tied maximum and minimum share evenly, max over an axis likewise.
// Threads: modes belong to a thread. Different graphs may be differentiated at once, one graph by one thread
// (TN-GRAD-008); sums into shared leaves are safe.
#pragma once
#include <tenon/core/tensor.hpp>

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace tenon {

bool grad_enabled();           // of this thread; true at first
bool set_grad_enabled(bool on);  // returns what was

// In its scope nothing is recorded (NoGrad) or everything is again (EnableGrad).
class NoGrad {
 public:
  NoGrad() : before_(set_grad_enabled(false)) {}
  ~NoGrad() { set_grad_enabled(before_); }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};
class EnableGrad {
 public:
  EnableGrad() : before_(set_grad_enabled(true)) {}
  ~EnableGrad() { set_grad_enabled(before_); }
  EnableGrad(const EnableGrad&) = delete;
  EnableGrad& operator=(const EnableGrad&) = delete;

 private:
  bool before_;
};

struct GradOptions {
  bool create_graph = false;   // record the derivative, to derive again; implies retain_graph
  bool retain_graph = false;   // keep the tape for another sweep
  bool allow_unused = false;   // an input that the outputs do not depend on: undefined instead of TN-GRAD-005
};
// Sum over outputs of d output / d input, weighted by grad_outputs (ones where absent, which needs one-element outputs).
// Nothing is added to grad() of leaves.
std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs, std::span<const Tensor> grad_outputs = {},
                         GradOptions options = {}, Where where = here());
Tensor grad(const Tensor& output, const Tensor& input, GradOptions options = {}, Where where = here());
std::vector<Tensor> grad(const Tensor& output, const std::vector<Tensor>& inputs, GradOptions options = {}, Where where = here());

// Called with the complete gradient of a tensor during a sweep; what it returns goes on in its place (undefined: as it was).
class GradientHook {
 public:
  virtual ~GradientHook() = default;
  virtual Tensor operator()(const Tensor& gradient) = 0;
};
// Hooks of a tensor run in the order of their registration and live as long as the tensor's place in the graph.
void add_hook(const Tensor& t, std::unique_ptr<GradientHook> hook, Where where = here());
template <class F>
void on_gradient(const Tensor& t, F function, Where where = here()) {
  struct Hook final : GradientHook {
    explicit Hook(F f) : f_(std::move(f)) {}
    Tensor operator()(const Tensor& g) override { return f_(g); }
    F f_;
  };
  add_hook(t, std::make_unique<Hook>(std::move(function)), where);
}

// An op of one's own: values by `forward`, derivative by `backward`.
//
//   struct Cube : Function {
//     Tensor forward(std::span<const Tensor> in) override { save(in[0]); return in[0] * in[0] * in[0]; }
//     std::vector<Tensor> backward(const Tensor& g) override { return {g * 3 * saved(0) * saved(0)}; }
//   };
//   Tensor y = apply<Cube>({x});
//
// forward runs unrecorded. What save() keeps must be an input or the output of the call for a second derivative to be
// right; saving anything else makes create_graph an error (TN-GRAD-006) instead of a silently wrong number.
class Function {
 public:
  Function();
  virtual ~Function();
  virtual Tensor forward(std::span<const Tensor> inputs) = 0;
  virtual std::vector<Tensor> backward(const Tensor& gradient) = 0;  // one per input; undefined = zero
  virtual const char* name() const { return "custom function"; }

 protected:
  void save(const Tensor& t);             // in forward
  const Tensor& saved(size_t i) const;    // in backward

 private:
  friend struct FunctionAccess;
  struct State;
  std::unique_ptr<State> state_;
};
Tensor apply(std::unique_ptr<Function> f, std::span<const Tensor> inputs, Where where = here());
template <class F, class... Args>
Tensor apply(std::initializer_list<Tensor> inputs, Args&&... args) {
  return tenon::apply(std::make_unique<F>(std::forward<Args>(args)...), std::span<const Tensor>(inputs.begin(), inputs.size()));
}

// How many tape nodes this process holds now. For leak tests.
int64_t live_nodes();

}  // namespace tenon
