#include "kernel/class_plans.h"

#include <cstring>

#include "kernel/memory.h"
#include "kernel/type_table.h"

namespace tenon::kernel {
namespace {

bool same_dense(const tn_type& a, const tn_type& model) {
  return a.rank == model.rank && std::memcmp(a.dim, model.dim, sizeof a.dim) == 0 && is_dense(a);
}

}  // namespace

std::string ClassPlans::key_of(const Request& r) {
  const tn_type* model = nullptr;
  std::string dtypes;
  if (r.op->derived() || r.op->def->view) return {};
  for (size_t i = 0; i < r.in.size(); ++i) {
    const tn_type& t = r.in[i];
    dtypes += static_cast<char>(t.dtype);
    if (!t.dtype) continue;
    if (!model) model = &t;
    if (r.type_only[i] || t.layout != TN_LAYOUT_STRIDED || t.align_log2 != 6 || !same_dense(t, *model)) return {};
  }
  if (!model || element_count(*model) < 2) return {};
  const uint32_t size_log2 = 63 - static_cast<uint32_t>(__builtin_clzll(static_cast<uint64_t>(element_count(*model))));
  const void* head[3] = {r.op, r.attrs.get(), r.device};
  const uint32_t numbers[4] = {r.flags, r.push_bytes, r.n_out, size_log2};
  std::string key(reinterpret_cast<const char*>(head), sizeof head);
  key.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
  return key + dtypes;
}

void ClassPlans::offer(const std::string& key, tn_plan* plan) {
  if (key.empty() || !plan->simple || plan->asked || plan->steps.size() != 1) return;
  const Step& step = plan->steps[0];
  // One symbol: the element count of operands merged into one axis.
  if (step.dyn.size() != 1 || plan->outputs.size() != plan->n_out) return;
  const tn_type& first = step.operands[0].type;
  if (step.dyn[0] != element_count(first)) return;
  for (const Place& p : step.operands)
    if (p.type.rank != first.rank || std::memcmp(p.type.dim, first.dim, sizeof first.dim) != 0 || !is_dense(p.type)) return;
  std::lock_guard lock(mutex_);
  if (models_.size() >= kLimit) return;
  if (models_.emplace(key, plan).second) retain_plan(plan);
}

tn_plan* ClassPlans::copy_for(const std::string& key, const std::vector<tn_type>& types) {
  tn_plan* model = nullptr;
  {
    std::lock_guard lock(mutex_);
    auto it = models_.find(key);
    if (it == models_.end()) return nullptr;
    model = it->second;
    retain_plan(model);
  }
  for (const tn_type& t : types)
    if (!is_dense(t) || t.rank != types[0].rank || std::memcmp(t.dim, types[0].dim, sizeof t.dim) != 0) return release_plan(model), nullptr;
  auto* plan = new tn_plan;
  plan->runtime = model->runtime;
  plan->device = model->device;
  plan->n_in = model->n_in;
  plan->n_out = model->n_out;
  plan->push_bytes = model->push_bytes;
  plan->attrs = model->attrs;
  plan->simple_views = model->simple_views;
  plan->simple_push = model->simple_push;
  plan->simple_bits = model->simple_bits;
  plan->inplace = model->inplace;
  std::memcpy(plan->source, model->source, sizeof plan->source);
  plan->decisions = model->decisions;
  plan->est_ns = model->est_ns;
  plan->steps = model->steps;
  Step& step = plan->steps[0];
  const double scale = static_cast<double>(element_count(types[0])) / static_cast<double>(step.dyn[0]);
  step.flops = static_cast<uint64_t>(static_cast<double>(step.flops) * scale);
  step.bytes = static_cast<uint64_t>(static_cast<double>(step.bytes) * scale);
  step.dyn[0] = element_count(types[0]);
  for (Place& p : plan->steps[0].operands) {
    const tn_type old = p.type;
    p.type = types[0];
    p.type.dtype = old.dtype;
    p.type.align_log2 = old.align_log2;
  }
  for (size_t i = 0; i < types.size(); ++i) {
    PlanOutput o = model->outputs[i];
    o.place.type = types[i];
    o.place.type.align_log2 = 6;
    o.type_id = 0;
    o.size_class = size_class_of(dense_bytes(types[i]));
    plan->outputs.push_back(o);
  }
  plan->simple_dyn = plan->steps[0].dyn.data();
  plan->simple = model->simple;
  release_plan(model);
  return plan;
}

void ClassPlans::clear() {
  std::unordered_map<std::string, tn_plan*> old;
  {
    std::lock_guard lock(mutex_);
    old.swap(models_);
  }
  for (auto& [key, plan] : old) release_plan(plan);
}

}  // namespace tenon::kernel
