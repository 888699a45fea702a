// kernel/hooks.h - the app's hooks, and events for them.
//
// A hook runs between use() and the end of the Use; set() waits for those that run, so that no old hook is called once it has
// returned. Where no hook is set, use() costs one load. Threads: any. set() is not for hooks themselves.
#pragma once
#include <tenon/runtime.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

namespace tenon::kernel {

class Hooks {
 public:
  class Use {
   public:
    explicit Use(Hooks& hooks);
    ~Use();
    Use(const Use&) = delete;
    const tn_hooks* operator->() const { return table_; }  // never nullptr; absent hooks are NULL
   private:
    Hooks* hooks_ = nullptr;
    const Use* outer_ = nullptr;  // of the same thread
    const tn_hooks* table_;
  };

  void set(const tn_hooks* hooks);
  bool wants(uint32_t event) const { return (mask_.load(std::memory_order_relaxed) >> event & 1) != 0; }
  void send(const tn_event& event);

 private:
  std::mutex set_mutex_;
  std::atomic<bool> any_{false}, changing_{false};
  std::atomic<uint32_t> mask_{0};  // events that are wanted and have somebody to hear them
  std::atomic<uint32_t> uses_{0};
  tn_hooks table_{};
};

uint64_t now_ns();

// An event from its beginning to the end of the scope; nothing where it is not wanted.
class TraceSpan {
 public:
  TraceSpan(Hooks& hooks, uint32_t kind) : hooks_(hooks.wants(kind) ? &hooks : nullptr) {
    if (hooks_) event_.size = sizeof event_, event_.kind = kind, event_.begin_ns = now_ns();
  }
  ~TraceSpan() {
    if (hooks_) event_.end_ns = now_ns(), hooks_->send(event_);
  }
  TraceSpan(const TraceSpan&) = delete;
  bool on() const { return hooks_ != nullptr; }
  void drop() { hooks_ = nullptr; }
  tn_event& event() { return event_; }

 private:
  Hooks* hooks_;
  tn_event event_{};
};

}  // namespace tenon::kernel
