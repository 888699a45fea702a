// backends/gpu_common/rows.cpp - the kernel rows of the plugin, and their supports, prepare, retire.
//
// Constraints belong to the plugin, capabilities to a device: devices with equal capabilities form a class, and where there is more
// than one class each has rows of its own, bound to it by a capability that gpu_common adds. So the conditions stay exact.
#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

#include "backends/gpu_common/rows.h"
#include "backends/gpu_common/state.h"

namespace tenon::gpu {
namespace {

constexpr uint32_t kMostRows = 96;

auto facts(const Caps& c) {
  return std::tie(c.dialect, c.device_class, c.architecture, c.storage, c.arithmetic, c.matrix, c.atomic_f32_add, c.atomic_i64, c.subgroup_min, c.subgroup_max, c.subgroup_fixed, c.max_threads,
                  c.max_group[0], c.max_group[1], c.max_group[2], c.max_groups[0], c.max_groups[1], c.max_groups[2], c.local_bytes, c.param_bytes, c.binding_bytes, c.max_bindings, c.binding_align,
                  c.index64, c.vector_bytes, c.compute_units);
}

tn_status slot_of(tn_instance* self, const tn_device_ref* ref, Slot** out, tn_diag* diag) {
  if (ref != nullptr && ref->device == nullptr)
    return report(diag, TN_E_UNSUPPORTED, kErrForeign, "%s: a device of another plugin\nwhy: its kernels run on devices that %s opened itself\ntry: pick a device of %s", self->name, self->name, self->name);
  *out = ref != nullptr ? ref->device->slot : self->slots.empty() ? nullptr : self->slots[0].get();
  if (*out == nullptr) return report(diag, TN_E_UNSUPPORTED, kErrNoSuchDevice, "%s has no device\nwhy: the driver lists none\ntry: install a driver", self->name);
  return TN_OK;
}

tn_status supports_row(tn_instance* self, uint32_t row, const tn_device_ref* ref, const tn_op* op, tn_support* out, tn_diag* diag) {
  Slot* slot = nullptr;
  if (tn_status s = slot_of(self, ref, &slot, diag); s != TN_OK) return s;
  return row_supports(row, slot->caps, *op, out, diag);
}

tn_status check_step(const Step& step, const tn_op& op, uint32_t n_views, tn_diag* diag) {
  const char* name = step.spec->name.c_str();
  const size_t bindings = step.reach.size() + (step.spec->can_fail ? 1 : 0);
  bool fits = bindings <= kMostBindings && step.reach.size() == step.spec->buffers.size() && step.params.size() <= kMostParamBytes;
  for (const Reach& r : step.reach) fits = fits && r.view < n_views;
  for (const Patch& p : step.patches)
    fits = fits && p.bytes <= 8 && p.at + p.bytes <= step.params.size() && (p.kind == Patch::Push ? (p.index + 1u) * 8 <= op.push_bytes : p.index < step.reach.size());
  for (const uint64_t g : step.groups) fits = fits && g > 0 && g <= UINT32_MAX;
  if (fits) return TN_OK;
  return report(diag, TN_E_BUG, kErrLaunch, "prepare: %s does not fit its own launch\nwhy: %zu of %u bindings, %zu of %u parameter bytes, or an index outside them\ntry: report this", name, bindings,
                kMostBindings, step.params.size(), kMostParamBytes);
}

tn_status build(tn_instance* self, uint32_t row, Slot* slot, const std::shared_ptr<Opened>& opened, const tn_op& op, std::unique_ptr<Plan>* out, tn_diag* diag) {
  Recipe recipe;
  if (tn_status s = make_recipe(slot->caps, row, op, &recipe, diag); s != TN_OK) return s;
  auto plan = std::make_unique<Plan>();
  const uint32_t n_views = uint32_t{op.n_in} + op.n_out;
  plan->head = {launch, self, recipe.workspace_bytes, n_views, op.push_bytes, 0, row};
  plan->slot = slot, plan->opened = opened;
  for (Step& step : recipe.steps) {
    if (tn_status s = check_step(step, op, n_views + (recipe.workspace_bytes != 0 ? 1 : 0), diag); s != TN_OK) return s;
    PlanStep made;
    tn_diag words{};
    if (tn_status s = opened->kernels->get(step.spec, slot->caps, &made.kernel, &words); s != TN_OK)
      return slot->told(*opened->device, s, words, diag);
    made.step = std::move(step);
    plan->steps.push_back(std::move(made));
  }
  *out = std::move(plan);
  return TN_OK;
}

tn_status prepare_row(tn_instance* self, uint32_t row, const tn_device_ref* ref, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  return guarded(diag, [&] {
    Slot* slot = nullptr;
    if (tn_status s = slot_of(self, ref, &slot, diag); s != TN_OK) return s;
    if (tn_status s = slot->alive(diag); s != TN_OK) return s;
    std::shared_ptr<Opened> opened = ref != nullptr ? ref->device->opened : nullptr;
    if (opened == nullptr)
      if (tn_status s = slot->open(&opened, diag); s != TN_OK) return s;
    std::unique_ptr<Plan> plan;
    if (tn_status s = build(self, row, slot, opened, *op, &plan, diag); s != TN_OK) return s;
    self->live.fetch_add(1);
    *out = &plan.release()->head;
    return tn_status{TN_OK};
  });
}

void retire(tn_instance* self, const tn_device_ref*, const tn_kernel_plan* head) {
  delete plan_of(head);
  self->live.fetch_sub(1);
}

// The ABI's calls do not say for which row they are: each row has functions of its own.
template <uint32_t Row>
tn_status supports_fn(tn_instance* self, const tn_device_ref* ref, const tn_op* op, tn_support* out, tn_diag* diag) {
  return guarded(diag, [&] { return supports_row(self, Row, ref, op, out, diag); });
}
template <uint32_t Row>
tn_status prepare_fn(tn_instance* self, const tn_device_ref* ref, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  return prepare_row(self, Row, ref, op, out, diag);
}
struct Entry { decltype(tn_kernel_info::supports) supports; decltype(tn_kernel_info::prepare) prepare; };
template <uint32_t... Row>
constexpr std::array<Entry, sizeof...(Row)> entries(std::integer_sequence<uint32_t, Row...>) {
  return {Entry{supports_fn<Row>, prepare_fn<Row>}...};
}
constexpr auto kEntries = entries(std::make_integer_sequence<uint32_t, kMostRows>());

}  // namespace

void sort_into_classes(std::vector<std::unique_ptr<Slot>>* slots) {
  std::vector<const Slot*> first;
  for (auto& slot : *slots) {
    const auto same = std::find_if(first.begin(), first.end(), [&](const Slot* s) { return facts(s->caps) == facts(slot->caps) && s->facts.info.kind == slot->facts.info.kind; });
    slot->kernel_class = static_cast<uint32_t>(same - first.begin());
    if (same == first.end()) first.push_back(slot.get());
  }
  if (first.size() < 2) return;
  for (auto& slot : *slots) {
    tn_cap cap{kCapKernelClass, TN_CAP_U64, TN_FROM_TABLE, {}};
    cap.v.u = slot->kernel_class;
    slot->facts.caps.push_back(cap);
  }
}

void RowTable::fill(const std::vector<std::unique_ptr<Slot>>& slots, const char* plugin) {
  std::vector<const Slot*> classes;
  for (const auto& slot : slots)
    if (slot->kernel_class == classes.size()) classes.push_back(slot.get());
  for (uint32_t row = 0; row < std::min(row_count(), kMostRows); ++row) {
    const RowInfo info = row_info(row);
    for (const Slot* slot : classes) {
      std::vector<tn_constraint> wanted = row_constraints(row, slot->caps);
      if (wanted.empty()) continue;
      std::erase_if(wanted, [](const tn_constraint& c) { return c.kind == TN_NEED_DEVICE_KIND; });
      wanted.insert(wanted.begin(), {0, TN_NEED_DEVICE_KIND, slot->facts.info.kind, 0, 0, 0});
      const int64_t number = slot->kernel_class;
      if (classes.size() > 1) wanted.push_back({0, TN_NEED_CAP, kCapKernelClass, 0, number, number});
      names.push_back(std::string(plugin) + "." + info.name + (number != 0 ? ".class" + std::to_string(number) : ""));
      constraints.push_back(std::move(wanted));
      tn_kernel_info k{};
      k.size = sizeof k, k.flags = info.flags;
      k.name = names.back().c_str();
      k.op_id = info.op_id, k.op_min = 1, k.op_max = 1, k.tier = info.tier;
      k.cons = constraints.back().data(), k.n_cons = static_cast<uint32_t>(constraints.back().size());
      k.inplace_mask = info.inplace_mask;
      k.supports = kEntries[row].supports, k.prepare = kEntries[row].prepare, k.retire = retire;
      rows.push_back(k);
    }
  }
}

}  // namespace tenon::gpu
