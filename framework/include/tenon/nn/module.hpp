// tenon/nn/module.hpp - parts of a model: parameters with paths, modes, states.
//
//   struct Net : nn::Layer<Net> {
//     Net() : Layer("Net") {}
//     nn::Linear fc1 = child("fc1", nn::Linear(784, 128)), fc2 = child("fc2", nn::Linear(128, 10));
//     Tensor forward(const Tensor& x) override { return fc2(relu(fc1(x))); }
//   };
//   Net net;  net.named_parameters();  // "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"
//
// A module object is a handle: copies share parameters, mode and children. Move a model to its device and type before an
// optimizer is made or after, both work: parameters keep their identity.
// Errors raised inside a module's forward name its path and how it was built.
#pragma once
#include <tenon/core/ops.hpp>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon::nn {

using StateDict = std::map<std::string, Tensor>;

// What loading a state left open; both empty after a strict load.
struct LoadReport { std::vector<std::string> missing, unexpected; };

class Module {
 public:
  virtual ~Module() = default;
  virtual Tensor forward(const Tensor& x) = 0;
  Tensor operator()(const Tensor& x, Where where = here());

  std::vector<Tensor> parameters() const;                                   // in order of registration, depth first
  std::vector<std::pair<std::string, Tensor>> named_parameters() const;
  std::vector<std::pair<std::string, Tensor>> named_buffers() const;        // saved, but not trained: running statistics
  int64_t parameter_count() const;
  StateDict state_dict() const;  // parameters and buffers, detached; shares their memory
  // Copies values in. strict: any missing or unexpected name, or another shape, is an error and nothing is changed.
  LoadReport load_state_dict(const StateDict& state, bool strict = true, Where where = here());

  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const { return state_->training; }
  void zero_grad();
  void move_to(Device d);
  void convert_to(DType t);               // floating parameters and buffers
  const std::string& path() const { return state_->path; }      // "" for the outermost
  const std::string& type() const { return state_->type; }      // "Linear"
  const std::string& built_with() const { return state_->built; }  // "in=784, out=128"
  std::string to_string() const;          // the tree, one module a line

 protected:
  explicit Module(std::string type, std::string built = "");
  Tensor parameter(const char* name, Tensor t);  // registers it as trainable; returns it
  Tensor buffer(const char* name, Tensor t);
  template <class M>
  M child(const std::string& name, M m) {
    attach(name, std::make_shared<M>(m));
    return m;
  }
  void attach(const std::string& name, std::shared_ptr<Module> m);
  const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& children() const { return state_->children; }

 private:
  struct State {
    std::string type, built, path;
    bool training = true;
    std::vector<std::pair<std::string, Tensor>> parameters, buffers;
    std::vector<std::pair<std::string, std::shared_ptr<Module>>> children;
  };
  template <class F> void each(const std::string& prefix, F&& f) const;
  void set_path(const std::string& path);
  std::shared_ptr<State> state_;
};

// Adds `to`, which hands the module itself back:  auto net = nn::sequential(...).to(device("auto"));
template <class Self>
class Layer : public Module {
 public:
  Self to(Device d) { move_to(d); return static_cast<Self&>(*this); }
  Self to(DType t) { convert_to(t); return static_cast<Self&>(*this); }

 protected:
  using Module::Module;
};

}  // namespace tenon::nn
