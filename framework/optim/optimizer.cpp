// What optimizers share: groups, steps, states; and the three optimizers.
#include <tenon/autograd/autograd.hpp>
#include <tenon/core/ops.hpp>
#include <tenon/optim/optim.hpp>

#include "framework/core/state.h"

#include <cmath>

namespace tenon::optim {
using detail::format;
using detail::raise;

Optimizer::Optimizer(std::vector<Tensor> parameters, double lr, double weight_decay, double momentum, Where where) {
  if (!(lr >= 0))
    raise(TN_E_ARG, error::id(error::kTrain, 9), where, "optimizer", "a learning rate below 0", format("lr %g", lr), "give a rate of 0 or more");
  if (parameters.empty())
    raise(TN_E_ARG, error::id(error::kTrain, 10), where, "optimizer", "no parameters to optimise", "the list is empty",
          "pass net.parameters() of a module that has some");
  for (const Tensor& p : parameters) detail::require_defined(p, "optimizer", "of the parameters", where);
  slots_.resize(parameters.size());
  groups_.push_back({std::move(parameters), lr, lr, weight_decay, momentum});
}

Group& Optimizer::add_group(Group g) {
  if (g.lr == 0) g.lr = groups_[0].base_lr;
  if (g.base_lr == 0) g.base_lr = g.lr;
  if (g.momentum == 0) g.momentum = groups_[0].momentum;
  slots_.resize(slots_.size() + g.parameters.size());
  groups_.push_back(std::move(g));
  return groups_.back();
}

void Optimizer::step(Where where) {
  std::vector<Tensor> gradients;
  for (const Group& g : groups_) for (const Tensor& p : g.parameters) gradients.push_back(p.grad());
  step(gradients, where);
}

void Optimizer::step(const std::vector<Tensor>& gradients, Where where) {
  if (gradients.size() != slots_.size())
    raise(TN_E_ARG, error::id(error::kTrain, 11), where, "step", "not one gradient per parameter",
          format("%zu gradients, %zu parameters", gradients.size(), slots_.size()), "pass grad(loss, parameters) in the optimizer's order");
  NoGrad off;
  size_t k = 0;
  for (Group& group : groups_) {
    for (Tensor& p : group.parameters) {
      const Tensor& g = gradients[k];
      Slot& slot = slots_[k++];
      if (!g.defined()) continue;
      ++slot.steps;
      update(p, g, slot, group, where);
    }
  }
  ++steps_;
}

void Optimizer::zero_grad() {
  for (Group& g : groups_) for (Tensor& p : g.parameters) p.set_grad({});
}

StateDict Optimizer::state() const {
  StateDict s;
  s["steps"] = tensor(steps_);
  for (size_t i = 0; i < groups_.size(); ++i) {
    const Group& g = groups_[i];
    s[format("group.%zu", i)] = tensor({g.lr, g.base_lr, g.weight_decay, g.momentum});
  }
  for (size_t k = 0; k < slots_.size(); ++k) {
    if (slots_[k].steps == 0) continue;
    s[format("slot.%zu.steps", k)] = tensor(slots_[k].steps);
    if (slots_[k].a.defined()) s[format("slot.%zu.%s", k, name_a())] = slots_[k].a;
    if (slots_[k].b.defined()) s[format("slot.%zu.%s", k, name_b())] = slots_[k].b;
  }
  return s;
}

void Optimizer::load_state(const StateDict& s, Where where) {
  auto fail = [&](const std::string& why) {
    raise(TN_E_ARG, error::id(error::kTrain, 8), where, "load_state", "the state belongs to another optimizer", why,
          "load it into an optimizer of the same kind, with the same groups and parameters");
  };
  auto find = [&](const std::string& name) { const auto at = s.find(name); return at == s.end() ? Tensor() : at->second; };
  if (!find("steps").defined()) fail("it has no entry \"steps\"");
  if (!find(format("group.%zu", groups_.size() - 1)).defined() || find(format("group.%zu", groups_.size())).defined())
    fail(format("this optimizer has %zu groups, the state another number", groups_.size()));
  std::vector<Slot> slots(slots_.size());
  size_t used = 1 + groups_.size(), k = 0;
  for (const Group& group : groups_) {
    for (const Tensor& p : group.parameters) {
      Slot& slot = slots[k];
      if (const Tensor t = find(format("slot.%zu.steps", k)); t.defined()) slot.steps = t.item<int64_t>(), ++used;
      for (auto [to, name] : {std::pair{&slot.a, name_a()}, std::pair{&slot.b, name_b()}}) {
        const Tensor t = *name ? find(format("slot.%zu.%s", k, name)) : Tensor();
        if (!t.defined()) continue;
        ++used;
        if (t.shape() != p.shape()) fail(format("slot %zu holds %s for a parameter %s", k, t.type_text().c_str(), p.type_text().c_str()));
        *to = t.to(p.device()).clone();  // the state may be loaded more than once
      }
      ++k;
    }
  }
  if (used != s.size()) fail(format("%zu of its %zu entries have a place here", used, s.size()));
  for (size_t i = 0; i < groups_.size(); ++i) {
    const auto v = find(format("group.%zu", i)).to_vector<double>();
    if (v.size() != 4) fail(format("group %zu holds %zu numbers, not 4", i, v.size()));
    groups_[i].lr = v[0];
    groups_[i].base_lr = v[1];
    groups_[i].weight_decay = v[2];
    groups_[i].momentum = v[3];
  }
  steps_ = find("steps").item<int64_t>();
  slots_ = std::move(slots);
}

SGD::SGD(std::vector<Tensor> parameters, SGDOptions o, Where where)
    : Optimizer(std::move(parameters), o.lr, o.weight_decay, o.momentum, where), o_(o) {
  if (o.nesterov && (o.momentum <= 0 || o.dampening != 0))
    raise(TN_E_ARG, error::id(error::kTrain, 12), where, "SGD", "Nesterov momentum needs a momentum and no dampening",
          format("momentum %g, dampening %g", o.momentum, o.dampening), "set momentum above 0 and dampening to 0");
}
void SGD::update(Tensor& p, const Tensor& g, Slot& slot, const Group& group, Where where) {
  const bool first = group.momentum != 0 && !slot.a.defined();
  if (first) slot.a = zeros_like(p.detach(), where);
  // The first buffer is the gradient itself: no dampening then.
  sgd_step_(p, g, slot.a, group.lr, group.momentum, group.weight_decay, first ? 0 : o_.dampening, o_.nesterov, where);
}

Adam::Adam(std::vector<Tensor> parameters, AdamOptions o, bool decoupled, Where where)
    : Optimizer(std::move(parameters), o.lr, o.weight_decay, o.beta1, where), o_(o), decoupled_(decoupled) {
  if (!(o.beta1 >= 0 && o.beta1 < 1 && o.beta2 >= 0 && o.beta2 < 1 && o.epsilon >= 0))
    raise(TN_E_ARG, error::id(error::kTrain, 13), where, "Adam", "a rate outside its range",
          format("beta1 %g, beta2 %g, epsilon %g", o.beta1, o.beta2, o.epsilon), "give betas in [0, 1) and an epsilon of 0 or more");
}
void Adam::update(Tensor& p, const Tensor& g, Slot& slot, const Group& group, Where where) {
  if (!slot.a.defined()) slot.a = zeros_like(p.detach(), where), slot.b = zeros_like(p.detach(), where);
  const double t = static_cast<double>(slot.steps);
  adam_step_(p, g, slot.a, slot.b,
             {group.lr, group.momentum, o_.beta2, o_.epsilon, decoupled_ ? 0 : group.weight_decay, decoupled_ ? group.weight_decay : 0,
              1 - std::pow(group.momentum, t), 1 - std::pow(o_.beta2, t)}, where);
}

double clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm, Where where) {
  NoGrad off;
  Tensor total;
  for (const Tensor& p : parameters) {
    const Tensor g = p.grad();
    if (!g.defined()) continue;
    const Tensor s = sum(square(g.to(g.dtype() == DType::f64 ? DType::f64 : DType::f32, where), where), {}, false, where).to(p.device(), where);
    total = total.defined() ? add(total, s.to(total.dtype(), where).to(total.device(), where), where) : s;
  }
  if (!total.defined()) return 0;
  const double norm = std::sqrt(total.item<double>(where)), scale = max_norm / (norm + 1e-6);
  if (!(scale < 1) && norm == norm) return norm;
  for (Tensor p : parameters)
    if (const Tensor g = p.grad(); g.defined()) p.set_grad(mul(Operand(g, where), Operand(scale, where)), where);
  return norm;
}

}  // namespace tenon::optim
