// kernel/queue.h - the core's queue: one device, one timeline, its plan cache and its memory pool.
//
// Used by one thread at a time. The plan cache maps exact ids to a plan: a hit takes no lock and allocates nothing but the
// result. On devices that work inline nothing is ever signalled; elsewhere the core signals lazily, when somebody asks.
#pragma once
#include <tenon/plugin.h>
#include <tenon/runtime.h>

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernel/device.h"
#include "kernel/plan.h"

namespace tenon::kernel {

constexpr uint32_t kKeyInputs = 8;  // more inputs than that go to the shared cache

// One exact call: op, attributes, operand counts, flags, types of the inputs.
struct alignas(64) CacheEntry {
  uint64_t op_attr = 0, counts = 0;
  uint32_t types[kKeyInputs] = {};
  tn_plan* plan = nullptr;  // one reference
};
static_assert(sizeof(CacheEntry) == 64);
constexpr uint32_t kCacheEntries = 4096;

// Asynchronous work not yet known to be good: what it read, to find what depends on a failure.
struct WorkRecord {
  uint64_t value = 0;
  std::vector<tn_point> inputs;
  const char* note = nullptr;
};
struct FailedWork {
  uint64_t value = 0;   // of this queue
  bool depends = false;
  tn_diag diag{};
};

}  // namespace tenon::kernel

struct tn_queue {
  tenon::kernel::Runtime* runtime = nullptr;
  tenon::kernel::Device* device = nullptr;
  uint32_t id = 0;
  uint32_t epoch = 0;             // of the runtime when the cache was filled
  bool inline_work = false;
  std::atomic<bool> direct{false};  // inline work that nobody traces: the shortest way, tested once in a call
  bool thread_bound = false;      // from tn_queue_get
  std::atomic<uint64_t> submitted{0};
  tn_dev_queue* dev_queue = nullptr;
  const char* note = nullptr;
  std::unique_ptr<tenon::kernel::QueuePool> pool;
  std::unique_ptr<tenon::kernel::CacheEntry[]> cache;

  // Asynchronous devices only; guarded by `lock`, since another thread may need a signal. A thread holds the lock of one
  // queue at a time: two queues that wait for each other's results would else block each other for good.
  std::recursive_mutex lock;
  tn_dev_timeline* timeline = nullptr;
  std::atomic<uint64_t> signalled{0}, confirmed{0};  // written under `lock`, read also without
  std::deque<tenon::kernel::WorkRecord> log;
  size_t next_look = 1024;  // so many records or holdings, and what is done is let go
  std::deque<tenon::kernel::FailedWork> failures;
  std::vector<std::pair<uint64_t, tenon::kernel::Storage*>> held;  // in use until the value passes
  std::atomic<bool> lost{false};
};

namespace tenon::kernel {

constexpr size_t kLogQuery = 1024;        // so many records, and the timeline is asked which of them are done
constexpr size_t kLogMost = 64 * 1024;    // so many, and a call waits for the older half: memory stays bounded

bool goes_direct(const tn_queue& q);
tn_status open_queue(Runtime& rt, Device* device, int32_t priority, bool thread_bound, std::unique_ptr<tn_queue>* out, tn_diag* diag);
tn_status connect_queue(tn_queue* q, int32_t priority, tn_diag* diag);  // of a queue whose device was closed and is back
// Of a queue that somebody kept while its plugin was unloaded and loaded again; at the way in of whatever reaches the device.
inline tn_status connected(tn_queue* q, tn_diag* diag) { return __builtin_expect(q->dev_queue != nullptr, 1) ? TN_OK : connect_queue(q, 0, diag); }
void close_queue(tn_queue* q);  // waits for its work
void clear_cache(tn_queue* q);

// What the device of `q` answered, passed on; a loss is noted for everybody first. words: may be NULL.
tn_status told(tn_queue* q, tn_status status, const tn_diag* words);
// Signals everything submitted so far; asynchronous devices only.
tn_status signal_queue(tn_queue* q, tn_diag* diag);
// Waits until `value` is reached and collects failures. Returns TN_OK also when work failed.
tn_status wait_queue(tn_queue* q, uint64_t value, uint64_t timeout_ns, tn_diag* diag);
// First failed value > after and <= upto, 0 if none; its cause in diag.
uint64_t find_failure(tn_queue* q, uint64_t after, uint64_t upto, bool* depends, tn_diag* diag);
// Records a launch of asynchronous work, and holds what it uses of other queues' pools, which hand memory out again in the
// order of their own queue only. Under q's lock.
void log_work(tn_queue* q, uint64_t value, const tn_tensor* const* in, uint32_t n_in);
void hold_foreign(tn_queue* q, uint64_t value, const tn_tensor* const* used, uint32_t n);
// Later work of q waits for what wrote `s`. Not to be called under q's lock, unless it was called before for the same.
tn_status order_after(tn_queue* q, const Storage* s, tn_diag* diag);
tn_status order_after_point(tn_queue* q, const tn_point& point, tn_diag* diag);

}  // namespace tenon::kernel
