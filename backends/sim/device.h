// backends/sim/device.h - what the simulated accelerator's files share.
//
// Owns: an instance owns the buffer table; a queue owns its worker thread and the work not yet done; the core owns, through
// the handles, devices, queues, timelines, buffers and plans, all counted in `live`.
// Threads: buffer table, timelines and queues lock on their own and never across a call into the host.
#pragma once
#include <tenon/plugin.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "backends/sim/plant.h"
#include "ops/reference/kernels.h"

namespace tenon::sim {

inline constexpr char kId[] = "dev.tenon.sim";
constexpr uint32_t vendor_kind() {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char* c = kId; *c != 0; ++c) hash = (hash ^ static_cast<unsigned char>(*c)) * 16777619u;
  return hash | 0x80000000u;
}

inline constexpr uint32_t kMostDevices = 8;

struct Block { char* data; uint64_t bytes; uint32_t device; };

// One device's share of sim.lose_after: all queues opened on it count together, and once lost it stays so.
struct Health {
  std::atomic<uint64_t> launches{0};
  std::atomic<bool> lost{false};
  // Held shared by work that runs, alone by the loss: whoever is told of it may free plans and memory at once.
  std::shared_mutex running;
};

// The kernel rows with the limits of the configuration among their conditions, so that selection declines what passes them.
struct LimitedRows {
  static constexpr int kMost = reference::KernelTable::kMaxConstraints + 2;
  tn_constraint constraint[reference::KernelTable::kCount][kMost];
  void apply(reference::KernelTable*, uint64_t max_rank, uint64_t max_operand_bytes);
};


// One entry of a queue. Everything the caller passed is copied, as plugin.h demands.
struct Work {
  enum Kind { Launch, Copy, Signal, Wait, Stop } kind = Stop;
  const tn_kernel_plan* plan = nullptr;
  void* data[reference::kMaxViews] = {};
  std::vector<uint64_t> push;
  void* dst = nullptr;
  const void* src = nullptr;
  uint64_t bytes = 0;
  tn_dev_timeline* timeline = nullptr;
  uint64_t value = 0;
};

// Address of `view` in simulated or host memory; TN_E_ARG if [low, high) around its first byte leaves the buffer.
tn_status locate(tn_instance*, const tn_view&, int64_t low, int64_t high, const char* what, void** out, tn_diag*);
void enqueue(tn_dev_queue*, Work&&);
// TN_OK while device `index` lives, else TN_E_DEVICE_LOST with its name. The answer of every entry once it is lost.
tn_status alive(tn_instance*, uint32_t index, tn_diag*);
void release_all(tn_instance*);  // buffers left at close

// Table entries; see plugin.h.
tn_status spaces(tn_device*, tn_space_info*, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag*);
tn_status alloc(tn_device*, uint32_t space, uint64_t bytes, uint64_t align, tn_buffer*, tn_diag*);
void free(tn_device*, const tn_buffer*);
tn_status copy(tn_dev_queue*, const tn_view* dst, const tn_view* src, tn_diag*);
tn_status queue_open(tn_device*, uint32_t flags, int32_t priority, tn_dev_queue** out, tn_diag*);
void queue_close(tn_dev_queue*);
tn_status timeline_open(tn_device*, uint64_t initial, tn_dev_timeline** out, tn_diag*);
void timeline_close(tn_dev_timeline*);
tn_status signal(tn_dev_queue*, tn_dev_timeline*, uint64_t value, tn_diag*);
tn_status wait(tn_dev_queue*, tn_dev_timeline*, uint64_t value, uint64_t timeout_ns, tn_diag*);
tn_status query(tn_dev_timeline*, uint64_t after, uint64_t* out_value, uint64_t* out_failed, tn_diag*);

}  // namespace tenon::sim

// The structs C only names.
struct tn_instance {
  const tn_host* host = nullptr;
  uint32_t n_devices = 1;
  uint64_t memory_bytes = 0, max_alloc_bytes = 0, latency_ns = 0;
  uint64_t lose_after = 0, lose_device = 0;  // the launch that loses it, counted from 1; 0 = never
  tenon::sim::Health health[tenon::sim::kMostDevices];
  std::atomic<uint32_t> live{0};
  std::mutex memory_mutex;
  std::map<uint64_t, tenon::sim::Block> blocks;  // by handle
  uint64_t next_handle = 1, used_bytes[tenon::sim::kMostDevices] = {};
  tenon::reference::KernelTable kernels;
  tenon::sim::LimitedRows limited;
};
struct tn_device { tn_instance* owner; uint32_t index; };
struct tn_dev_timeline {
  struct Failure { uint64_t value; tn_diag diag; };
  tn_instance* owner = nullptr;
  uint32_t device = 0;
  std::mutex mutex;
  std::condition_variable advanced;
  uint64_t value = 0;
  std::vector<Failure> failures;      // by rising value
  // Signals on their way out and queued work that names this timeline. Close waits for them, since on a lost device nobody
  // else has waited for the work.
  std::atomic<uint32_t> users{0};
  std::atomic<bool> closing{false};
};
struct tn_dev_queue {
  tn_instance* owner = nullptr;
  uint32_t device = 0;
  std::mutex mutex;
  std::condition_variable more;
  std::deque<tenon::sim::Work> work;
  std::atomic<bool> closing{false};
  bool failed = false;   // worker only: something since the last signal
  tn_diag failure{};     // worker only
  std::thread worker;
};
