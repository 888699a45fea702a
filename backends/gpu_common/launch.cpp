// backends/gpu_common/launch.cpp - the hot path: from a plan and its operands to the driver's dispatches. Allocates nothing.
#include <algorithm>
#include <cstring>

#include "backends/gpu_common/state.h"
#include "ops/gpu/text.h"

namespace tenon::gpu {
namespace {

struct Arguments {
  Binding binding[kMostBindings];
  uint64_t first[kMostBindings];  // bytes between what is bound and the first byte that the step reaches
  alignas(8) unsigned char params[kMostParamBytes];
};

tn_status bind(const Slot* slot, const Caps& caps, const PlanStep& s, const tn_view* views, Arguments* a, tn_diag* diag) {
  const std::vector<Reach>& reach = s.step.reach;
  for (size_t i = 0; i < reach.size(); ++i) {
    const tn_view& view = views[reach[i].view];
    Block* block = nullptr;
    const int64_t low = reach[i].byte_offset;
    if (tn_status st = locate(slot, view, low < 0 ? low : 0, low + static_cast<int64_t>(reach[i].bytes), "launch: operand", reach[i].view, &block, diag); st != TN_OK) return st;
    const uint64_t start = view.offset + static_cast<uint64_t>(low);
    const uint64_t from = caps.binding_align != 0 ? start / caps.binding_align * caps.binding_align : 0;
    // Four bytes at least, and whole words: a kernel reads narrow elements by the word that holds them.
    const uint64_t end = std::min(block->bytes, (std::max(start + reach[i].bytes, from + 4) + 3) / 4 * 4);
    a->binding[i] = {block->handle, from, end - from};
    a->first[i] = start - from;
  }
  return TN_OK;
}

tn_status patch(const PlanStep& s, const void* push, Arguments* a, tn_diag* diag) {
  if (!s.step.params.empty()) std::memcpy(a->params, s.step.params.data(), s.step.params.size());
  for (const Patch& p : s.step.patches) {
    uint64_t value = 0;
    if (p.kind == Patch::Push) std::memcpy(&value, static_cast<const char*>(push) + size_t{p.index} * 8, 8);
    else {
      const uint32_t size = element_bytes(s.kernel->spec->buffers[p.index].dtype);
      value = a->first[p.index] / size;
      if (a->first[p.index] % size != 0)
        return report(diag, TN_E_ARG, kErrLaunch, "launch: binding %u starts inside an element\nwhy: %llu bytes before it, elements have %u\ntry: align the view to its element type", p.index,
                      ull(a->first[p.index]), size);
      if (p.bytes == 4 && value > UINT32_MAX)
        return report(diag, TN_E_LIMIT, kErrTooLarge, "launch: binding %u starts too far into its buffer\nwhy: at element %llu, the kernel counts in 32 bits\ntry: give the tensor a buffer of its own", p.index,
                      ull(value));
    }
    std::memcpy(a->params + p.at, &value, p.bytes);
  }
  return TN_OK;
}

}  // namespace

tn_status check_launch(const tn_dev_queue* q, const Plan& plan, const tn_view* views, tn_diag* diag) {
  if (plan.slot != q->slot)
    return report(diag, TN_E_ARG, kErrForeign, "launch: the plan is another device's\nwhy: made for %s:%u, the queue is of %s:%u\ntry: prepare the kernel for this device", plan.slot->owner->name,
                  plan.slot->index, q->slot->owner->name, q->slot->index);
  Arguments a;
  for (const PlanStep& s : plan.steps)
    if (tn_status st = bind(q->slot, q->slot->caps, s, views, &a, diag); st != TN_OK) return st;
  return TN_OK;
}

tn_status run_launch(tn_dev_queue* q, const Plan& plan, const tn_view* views, const void* push, tn_diag* diag) {
  if (plan.slot != q->slot || plan.steps.size() > 1)  // before the first step runs, all must be able to
    if (tn_status s = check_launch(q, plan, views, diag); s != TN_OK) return s;
  Arguments a;
  for (const PlanStep& s : plan.steps) {
    if (tn_status st = bind(q->slot, q->slot->caps, s, views, &a, diag); st != TN_OK) return st;
    if (tn_status st = patch(s, push, &a, diag); st != TN_OK) return st;
    const KernelSpec& spec = *s.kernel->spec;
    Dispatch d;
    d.kernel = s.kernel->kernel.get();
    d.bindings = a.binding, d.n_bindings = static_cast<uint32_t>(s.step.reach.size());
    tn_diag words{};
    tn_status st = TN_OK;
    if (spec.can_fail) st = error_word(q, s.kernel->spec, &a.binding[d.n_bindings++], &words);
    d.params = a.params, d.param_bytes = static_cast<uint32_t>(s.step.params.size());
    for (int i = 0; i < 3; ++i) d.groups[i] = static_cast<uint32_t>(s.step.groups[i]), d.group[i] = spec.group[i];
    if (st == TN_OK) st = q->stream->dispatch(d, &words);
    if (st == TN_OK) continue;
    return q->slot->told(*q->opened->device, st, words, diag);
  }
  return TN_OK;
}

}  // namespace tenon::gpu
