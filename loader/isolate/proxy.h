// loader/isolate/proxy.h - the table of an isolated plugin: every entry becomes a call of its worker process.
//
//   std::shared_ptr<WorkerProcess> worker;  Facts facts;
//   start_worker(job, &worker, &facts);                 // the file is opened and its table checked, in the worker
//   tn_plugin table = proxy_table(facts, my_open);      // my_open calls open_proxy(worker, host, out, diag)
//
// Differences from the plugin in the program: a launch on a device that works beside the host returns before the plugin has
// seen it, so what the plugin refuses there fails later, on the timeline; kernels serve the plugin's own devices only; no interfaces (iface) and no
// external memory, for handles mean nothing in another process; memory of devices that work while the caller waits
// (TN_DEVICE_INLINE) is shared memory of this side, that of all others stays in the worker and has no host address; plans of
// inline devices are made for one size each.
// Threads: as plugin.h says.
#pragma once
#include <tenon/plugin.h>

#include <array>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "loader/isolate/shared_heap.h"
#include "loader/isolate/worker_process.h"
#include "loader/verdict.h"

namespace tenon::loader::isolate {

// Which entries the plugin's table has.
struct Facts {
  bool timelines = false, caps = false, kernels = false;
};

// Opens the plugin in a new worker. A verdict when that fails: the plugin's own (bad-table, missing-dependency, ...), open-error
// when it ended the worker, cannot-isolate when it has no devices of its own or there is no worker.
std::optional<Verdict> start_worker(const Job& job, std::shared_ptr<WorkerProcess>* out, Facts* facts);

using OpenEntry = tn_status (*)(const tn_host*, tn_instance**, tn_diag*);
tn_plugin proxy_table(const Facts& facts, OpenEntry open);
tn_status open_proxy(std::shared_ptr<WorkerProcess> worker, const tn_host* host, tn_instance** out, tn_diag* diag);

// ---- what the parts of the proxy share: the handles behind the table ----------------------------------------------------
struct Instance;

// A copy to host memory, or one from it, whose shared block is in use until the device has passed it.
struct PendingCopy {
  SharedBlock block;
  void* to = nullptr;     // NULL: nothing comes back
  uint64_t value = 0;     // of the timeline that it is attached to
};

struct DeviceProxy {
  Instance* owner;
  uint64_t remote;
  uint32_t index;
  bool inline_work;
  std::vector<tn_space_info> spaces; // of inline devices
  std::atomic<uint64_t> used_bytes{0};
};
struct QueueProxy {
  Instance* owner;
  DeviceProxy* device;
  uint64_t remote;
  std::unique_ptr<Lane> lane;
  std::vector<PendingCopy> fresh;    // since the last signal; used by the queue's thread
  std::vector<PendingCopy> forgotten;  // their timeline was closed
};
struct TimelineProxy {
  Instance* owner;
  uint64_t remote;
  struct Attached { PendingCopy copy; QueueProxy* queue; };
  std::vector<Attached> attached;    // under the instance's lock
};

// One kernel as the plugin described it.
struct RowProxy {
  tn_kernel_info info{};
  std::string name, layout;
  bool has_name = false, has_supports = false;
  std::vector<tn_constraint> constraints;
  tn_kernel_packed packed{};
  std::list<tn_ext> others;          // critical extensions that the core shall refuse as it would in the program
};

struct Extent {
  int64_t low = 0, high = 0;         // bytes around a view's first element
  bool written = false;
};
struct PlanProxy {
  tn_kernel_plan head{};             // first: the core and the plan share one address
  Instance* owner = nullptr;
  uint64_t remote = 0;
  uint32_t n_symbols = 0;
  bool inline_work = false;
  std::vector<Extent> extents;       // of inline devices' operands, the workspace not included
};

struct Instance {
  explicit Instance(std::shared_ptr<WorkerProcess> w) : worker(std::move(w)), heap(*worker) {}
  tn_status call(Call what, const Writer& in, std::string* reply, tn_diag* diag, Lane* lane = nullptr) { return worker->call(lane, what, in, reply, diag); }
  std::shared_ptr<WorkerProcess> worker;
  SharedHeap heap;
  std::vector<tn_device_info> devices;
  std::vector<RowProxy> rows;        // complete before the core sees them; then constant
  std::vector<tn_kernel_info> infos;
  std::mutex caps_mutex;
  std::vector<std::unique_ptr<std::vector<tn_cap>>> caps;
  std::list<std::string> texts;      // of capabilities
  std::mutex copies_mutex;
  std::vector<TimelineProxy*> awaited;  // timelines with attached copies
  std::atomic<uint32_t> n_attached{0};
};

inline Instance* of(tn_instance* p) { return reinterpret_cast<Instance*>(p); }
inline DeviceProxy* of(tn_device* p) { return reinterpret_cast<DeviceProxy*>(p); }
inline QueueProxy* of(tn_dev_queue* p) { return reinterpret_cast<QueueProxy*>(p); }
inline TimelineProxy* of(tn_dev_timeline* p) { return reinterpret_cast<TimelineProxy*>(p); }

// proxy_kernels.cpp
tn_status fetch_rows(Instance*, tn_diag*);
tn_status kernels(tn_instance*, const tn_kernel_info** out, uint32_t* out_stride, uint32_t* out_n, tn_diag*);
// proxy_queue.cpp
tn_status copy(tn_dev_queue*, const tn_view* dst, const tn_view* src, tn_diag*);
tn_status queue_open(tn_device*, uint32_t flags, int32_t priority, tn_dev_queue** out, tn_diag*);
void queue_close(tn_dev_queue*);
tn_status timeline_open(tn_device*, uint64_t initial, tn_dev_timeline** out, tn_diag*);
void timeline_close(tn_dev_timeline*);
tn_status signal(tn_dev_queue*, tn_dev_timeline*, uint64_t value, tn_diag*);
tn_status wait(tn_dev_queue*, tn_dev_timeline*, uint64_t value, uint64_t timeout_ns, tn_diag*);
tn_status query(tn_dev_timeline*, uint64_t after, uint64_t* out_value, uint64_t* out_failed, tn_diag*);

}  // namespace tenon::loader::isolate
