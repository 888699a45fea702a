// tools/conformance/host.h - the host a plugin under test gets: every allocation is counted and fenced, the N-th can fail.
//
// Threads: its functions from any, as plugin.h says; the rest from the one that owns it.
#pragma once
#include <tenon/plugin.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tenon::conformance {

class Host {
 public:
  explicit Host(std::map<std::string, std::string> config, uint32_t threads = 2);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  const tn_host* table() const { return &table_; }

  int64_t live_blocks() const { return live_blocks_.load(); }
  uint64_t allocations() const { return allocations_.load(); }
  // The n-th allocation from now on (0 = the next) and all after it give NULL; -1: none.
  void fail_from(int64_t n) { fail_in_.store(n); }
  // What the plugin did wrong with memory of the host: a foreign block freed, a byte behind a block written.
  std::vector<std::string> faults() const;

 private:
  static void* alloc(void* ctx, uint64_t bytes, uint64_t align);
  static void release(void* ctx, void* p);
  static void parallel(void* ctx, int64_t n, int64_t grain, tn_range_fn fn, void* arg);
  void note(const std::string& fault);

  std::map<std::string, std::string> config_;
  uint32_t threads_;
  tn_host table_{};
  std::atomic<int64_t> live_blocks_{0}, fail_in_{-1};
  std::atomic<uint64_t> allocations_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> faults_;
};

}  // namespace tenon::conformance
