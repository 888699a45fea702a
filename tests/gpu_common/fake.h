// tests/gpu_common/fake.h - a driver on host memory with a worker thread per stream, and recipes of two kernels: "inc" adds 1 to each
// u32 of its buffer plus what is pushed, "bad" reports a failure. What tests do to it goes through Fake::get().
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>

#include "backends/gpu_common/driver.h"

namespace tenon::gpu::test {

struct Fake {
  static Fake& get();
  std::atomic<bool> lost{false}, corrupt{false}, mute{false};  // mute: lost without words
  std::atomic<int> compiles{0}, kernels{0}, devices{2}, blocks{0};
  std::atomic<uint64_t> binding_align{16}, max_alloc{1 << 20};
  std::atomic<bool> differ{false};  // the second device has less local memory
  // Work stops at the gate while it is shut.
  void shut() { open_ = false; }
  void let() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_.load(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> open_{true};
};

}  // namespace tenon::gpu::test
