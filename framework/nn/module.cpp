// Modules: registration, paths, states, error context.
#include <tenon/autograd/autograd.hpp>
#include <tenon/nn/module.hpp>

#include "framework/core/state.h"

#include <algorithm>

namespace tenon::nn {
using detail::format;
using detail::raise;

Module::Module(std::string type, std::string built) : state_(std::make_shared<State>()) {
  state_->type = std::move(type);
  state_->built = std::move(built);
}

Tensor Module::operator()(const Tensor& x, Where where) {
  try {
    return forward(x);
  } catch (Error& e) {
    const std::string name = state_->path.empty() ? state_->type : state_->path + " (" + state_->type + ")";
    e.add_context("in " + name, state_->built.empty() ? "" : state_->type + " was built with " + state_->built);
    e.relocate(where);
    throw;
  }
}

Tensor Module::parameter(const char* name, Tensor t) {
  t.set_requires_grad(true);
  state_->parameters.emplace_back(name, t);
  return t;
}
Tensor Module::buffer(const char* name, Tensor t) {
  state_->buffers.emplace_back(name, t);
  return t;
}

void Module::attach(const std::string& name, std::shared_ptr<Module> m) {
  for (const auto& c : state_->children)
    if (c.first == name)
      raise(TN_E_EXISTS, error::id(error::kTrain, 2), Where{"", 0}, "child", "a module has two children of one name",
            state_->type + " already has \"" + name + "\", a " + c.second->type(), "give each child its own name");
  m->set_path(state_->path.empty() ? name : state_->path + "." + name);
  state_->children.emplace_back(name, std::move(m));
}
void Module::set_path(const std::string& path) {
  state_->path = path;
  for (auto& [name, c] : state_->children) c->set_path(path + "." + name);
}

template <class F>
void Module::each(const std::string& prefix, F&& f) const {
  f(prefix, *state_);
  for (const auto& [name, c] : state_->children) c->each(prefix + name + ".", f);
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> out;
  each("", [&](const std::string&, State& s) { for (auto& p : s.parameters) out.push_back(p.second); });
  return out;
}
std::vector<std::pair<std::string, Tensor>> Module::named_parameters() const {
  std::vector<std::pair<std::string, Tensor>> out;
  each("", [&](const std::string& prefix, State& s) { for (auto& p : s.parameters) out.emplace_back(prefix + p.first, p.second); });
  return out;
}
std::vector<std::pair<std::string, Tensor>> Module::named_buffers() const {
  std::vector<std::pair<std::string, Tensor>> out;
  each("", [&](const std::string& prefix, State& s) { for (auto& p : s.buffers) out.emplace_back(prefix + p.first, p.second); });
  return out;
}
int64_t Module::parameter_count() const {
  int64_t n = 0;
  for (const Tensor& p : parameters()) n += p.numel();
  return n;
}

StateDict Module::state_dict() const {
  StateDict out;
  for (auto& [name, t] : named_parameters()) out.emplace(name, t.detach());
  for (auto& [name, t] : named_buffers()) out.emplace(name, t.detach());
  return out;
}

namespace {

std::string quoted(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < 5; ++i) out += (i ? ", " : "") + names[i];
  return names.size() > 5 ? out + format(" and %zu more", names.size() - 5) : out;
}

[[noreturn]] void raise_names(const LoadReport& r, Where where) {
  std::string why, advice = "load a state of this model, or pass strict = false";
  if (!r.missing.empty()) why += format("%zu missing: ", r.missing.size()) + quoted(r.missing);
  if (!r.unexpected.empty()) {
    why += (why.empty() ? "" : "; ") + format("%zu unexpected: ", r.unexpected.size()) + quoted(r.unexpected);
    const std::string guess = nearest_name(r.unexpected[0], r.missing.data(), r.missing.size());
    if (!guess.empty()) advice = "rename " + r.unexpected[0] + " to " + guess;
  }
  raise(TN_E_NOT_FOUND, error::id(error::kTrain, 3), where, "load_state_dict", "the state does not fit the model", why, advice);
}

}  // namespace

LoadReport Module::load_state_dict(const StateDict& state, bool strict, Where where) {
  auto own = named_parameters();
  for (auto& b : named_buffers()) own.push_back(b);
  LoadReport report;
  for (auto& [name, t] : own) {
    const auto at = state.find(name);
    if (at == state.end()) {
      report.missing.push_back(name);
    } else if (at->second.shape() != t.shape()) {
      raise(TN_E_SHAPE, error::id(error::kTrain, 4), where, "load_state_dict", "a value of the state has another shape than the model's",
            name + ": the model has " + t.type_text() + ", the state " + at->second.type_text(), "build the model as it was built when it was saved");
    }
  }
  for (auto& [name, t] : state)
    if (std::none_of(own.begin(), own.end(), [&n = name](auto& o) { return o.first == n; })) report.unexpected.push_back(name);
  if (strict && !(report.missing.empty() && report.unexpected.empty())) raise_names(report, where);
  NoGrad off;
  for (auto& [name, t] : own)
    if (const auto at = state.find(name); at != state.end()) t.copy_(at->second, where);
  return report;
}

void Module::train(bool on) {
  state_->training = on;
  for (auto& [name, c] : state_->children) c->train(on);
}
void Module::zero_grad() {
  for (Tensor& p : parameters()) p.set_grad({});
}
void Module::move_to(Device d) {
  NoGrad off;
  each("", [&](const std::string&, State& s) {
    for (auto* list : {&s.parameters, &s.buffers}) for (auto& p : *list) p.second.set_data(p.second.detach().to(d));
  });
}
void Module::convert_to(DType t) {
  NoGrad off;
  each("", [&](const std::string&, State& s) {
    for (auto* list : {&s.parameters, &s.buffers})
      for (auto& p : *list) if (is_float(p.second.dtype())) p.second.set_data(p.second.detach().to(t));
  });
}

std::string Module::to_string() const {
  std::string out;
  each("", [&](const std::string& prefix, State& s) {
    const size_t depth = static_cast<size_t>(std::count(prefix.begin(), prefix.end(), '.'));
    if (!out.empty()) out += '\n';
    out += std::string(2 * depth, ' ') + (prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1) + ": ") + s.type + "(" + s.built + ")";
  });
  return out;
}

}  // namespace tenon::nn
