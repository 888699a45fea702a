#include "kernel/hooks.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace tenon::kernel {
namespace {

constexpr tn_hooks kNone{};

// The innermost use of hooks by this thread: one that calls into the runtime must not wait for a set() that waits for it. Plain:
// plugins log from destructors too, when what a thread constructs is gone already.
thread_local const Hooks::Use* t_inside = nullptr;

}  // namespace

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

Hooks::Use::Use(Hooks& hooks) : table_(&kNone) {
  if (!hooks.any_.load(std::memory_order_relaxed)) return;
  bool nested = false;
  for (const Use* u = t_inside; u != nullptr; u = u->outer_) nested |= u->hooks_ == &hooks;
  for (;;) {
    hooks.uses_.fetch_add(1);
    if (nested || !hooks.changing_.load()) break;
    hooks.uses_.fetch_sub(1);
    while (hooks.changing_.load()) std::this_thread::yield();
  }
  hooks_ = &hooks;
  table_ = &hooks.table_;
  outer_ = t_inside;
  t_inside = this;
}

Hooks::Use::~Use() {
  if (!hooks_) return;
  t_inside = outer_;
  hooks_->uses_.fetch_sub(1);
}

void Hooks::set(const tn_hooks* hooks) {
  std::lock_guard lock(set_mutex_);
  changing_ = true;
  mask_ = 0;
  while (uses_.load() != 0) std::this_thread::yield();
  table_ = tn_hooks{};
  if (hooks) std::memcpy(&table_, hooks, std::min<size_t>(hooks->size, sizeof table_));
  mask_ = table_.event ? table_.trace_mask : 0;
  any_ = hooks != nullptr;
  changing_ = false;
}

void Hooks::send(const tn_event& event) {
  const Use use(*this);
  if (use->event && use->trace_mask >> event.kind & 1) use->event(use->ctx, &event);
}

}  // namespace tenon::kernel
