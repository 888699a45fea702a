// backends/gpu_common/state.h - what the files of gpu_common share: the instance, its devices, memory blocks, queues, timelines.
//
// Owns: the instance owns the driver and a Slot per device; a Slot owns the opened Device while anything uses it. The core owns,
// through the handles, devices, buffers, queues, timelines and plans, all counted in `live`.
// Locks, in this order: Queue::completing, Queue::mutex, Timeline::mutex, Slot's. None is held across a call into the host.
#pragma once
#include <tenon/plugin.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "backends/gpu_common/config.h"
#include "backends/gpu_common/driver.h"
#include "backends/gpu_common/errors.h"
#include "backends/gpu_common/kernel_cache.h"
#include "ops/gpu/recipe.h"

namespace tenon::gpu {

struct Opened {
  std::unique_ptr<Device> device;
  std::unique_ptr<KernelCache> kernels;  // goes before its device
};

// One device of the instance, opened or not.
struct Slot {
  tn_instance* owner = nullptr;
  uint32_t index = 0, kernel_class = 0;  // devices of one class have equal Caps, hence the same kernel rows
  DeviceFacts facts;
  Caps caps;                             // with the limits of the configuration
  std::mutex mutex;
  std::weak_ptr<Opened> opened;
  std::vector<tn_dev_timeline*> timelines;  // whose waiters a loss wakes
  std::atomic<bool> lost{false};
  tn_diag loss{};                           // written before `lost`

  // TN_OK, or TN_E_DEVICE_LOST with the words of the loss: what every entry answers from then on.
  tn_status alive(tn_diag*) const;
  void lose(const tn_diag* words);
  // What a driver answered, for the caller: fills diag with its words. Notes a loss that the answer tells of, and asks the
  // driver's health after other failures. Returns `status`.
  tn_status told(Device&, tn_status status, const tn_diag& words, tn_diag* diag);
  tn_status open(std::shared_ptr<Opened>* out, tn_diag*);
};

// Behind a buffer's handle.
struct Block {
  Slot* slot;
  std::shared_ptr<Opened> opened;
  uint64_t handle, bytes;
  char* host;  // NULL where the host cannot reach it
};
inline Block* block_of(uint64_t handle) { return reinterpret_cast<Block*>(static_cast<uintptr_t>(handle)); }
// The block of `view` on this device, with [low, high) around its first byte inside; TN_E_ARG otherwise.
tn_status locate(const Slot*, const tn_view& view, int64_t low, int64_t high, const char* what, uint32_t number, Block** out, tn_diag*);

struct PlanStep {
  std::shared_ptr<const LoadedKernel> kernel;
  Step step;
};
struct Plan {
  tn_kernel_plan head;  // first: the core sees only this
  Slot* slot;
  std::shared_ptr<Opened> opened;
  std::vector<PlanStep> steps;
};
inline const Plan* plan_of(const tn_kernel_plan* p) { return reinterpret_cast<const Plan*>(p); }
inline constexpr uint32_t kMostParamBytes = 4096;

// The rows that this plugin offers, made when it opens.
struct RowTable {
  std::vector<tn_kernel_info> rows;
  std::deque<std::string> names;
  std::deque<std::vector<tn_constraint>> constraints;
  void fill(const std::vector<std::unique_ptr<Slot>>&, const char* plugin);
};
// Numbers the classes; more than one class makes each device state its own as a capability.
void sort_into_classes(std::vector<std::unique_ptr<Slot>>*);

// What a timeline's advance leaves to be done without locks: tell the host, run queues that waited.
struct Aftermath {
  struct Progress { std::shared_ptr<tn_dev_timeline> timeline; uint64_t value; };
  std::vector<Progress> progress;
  std::vector<std::shared_ptr<tn_dev_queue>> resume;
  void run();
};

void advance(tn_dev_timeline*, uint64_t value, const tn_diag* failure, Aftermath*);
// Under the queue's mutex: later work of it comes after the value. *blocked: nobody has given that value to the device yet.
tn_status wait_there(tn_dev_queue*, tn_dev_timeline*, uint64_t value, bool* blocked, tn_diag*);
tn_status run_launch(tn_dev_queue*, const Plan&, const tn_view* views, const void* push, tn_diag*);
tn_status check_launch(const tn_dev_queue*, const Plan&, const tn_view* views, tn_diag*);
void complete_ready(tn_dev_queue*);       // takes finished signals out of the queue and advances their timelines
void run_deferred(tn_dev_queue*, Aftermath*);
// Under the queue's mutex. error_word: the word that kernels of `spec` report to; what other kernels may have reported is read
// back first. readback: copies what was reported since the last one to the host, in the queue's order.
tn_status error_word(tn_dev_queue*, const std::shared_ptr<const KernelSpec>& spec, Binding* out, tn_diag*);
tn_status readback(tn_dev_queue*, tn_diag*);

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
tn_status launch(const tn_kernel_plan*, const tn_launch*);

// Nothing is thrown across the ABI.
template <class F>
tn_status guarded(tn_diag* diag, F f) noexcept {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return report(diag, TN_E_OOM, kErrOutOfMemory, "no memory on the host\nwhy: the heap is exhausted\ntry: free memory, or wait for earlier work");
  } catch (const std::exception& e) {
    return report(diag, TN_E_OOM, kErrOutOfMemory, "the system refused a thread or a lock\nwhy: %.120s\ntry: close what is not needed", e.what());
  }
}

// A launch's failure word as it was when the kernels of `spec` had run.
struct FailureWord { std::unique_ptr<uint32_t[]> word; std::shared_ptr<const KernelSpec> spec; };

// A signal whose fence the device has not passed yet. No fence: it counts as passed.
struct Pending {
  std::shared_ptr<Fence> fence;
  std::shared_ptr<tn_dev_timeline> timeline;
  uint64_t value = 0;
  std::vector<FailureWord> words;
  bool failed = false;
  tn_diag failure{};
};

// Work that stands behind a wait for a value that nobody has given to the device yet.
struct Deferred {
  enum Kind { Launch, Copy, Signal, Wait } kind = Wait;
  const Plan* plan = nullptr;
  std::vector<tn_view> views;  // Launch: operands; Copy: destination, source
  std::vector<uint64_t> push;
  std::shared_ptr<tn_dev_timeline> timeline;
  uint64_t value = 0;
};

}  // namespace tenon::gpu

// The structs C only names.
struct tn_instance {
  const tn_host* host = nullptr;
  const char* name = "";
  tenon::gpu::Settings settings;
  std::unique_ptr<tenon::gpu::KernelStore> store;
  std::unique_ptr<tenon::gpu::Driver> driver;  // outlives all devices
  std::vector<std::unique_ptr<tenon::gpu::Slot>> slots;
  tenon::gpu::RowTable rows;
  std::atomic<uint32_t> live{0};
  tn_native native{};
};
struct tn_device {
  tenon::gpu::Slot* slot;
  std::shared_ptr<tenon::gpu::Opened> opened;
};
struct tn_dev_timeline : std::enable_shared_from_this<tn_dev_timeline> {
  struct Failure { uint64_t value; tn_diag diag; };
  struct Point { uint64_t value; std::shared_ptr<tenon::gpu::Fence> fence; std::weak_ptr<tn_dev_queue> queue; const tenon::gpu::Opened* opened; };
  tenon::gpu::Slot* slot = nullptr;
  std::shared_ptr<tenon::gpu::Opened> opened;
  std::shared_ptr<tn_dev_timeline> self;  // until closed
  std::mutex mutex;
  std::condition_variable changed;        // a value, a point, a loss
  uint64_t value = 0, asked = 0;          // reached; the largest that was asked for
  std::vector<Failure> failures;          // by rising value
  std::deque<Point> points;               // fences on their way, by rising value
  std::vector<std::weak_ptr<tn_dev_queue>> waiting;  // queues with work deferred for a value of this
  std::atomic<uint32_t> told{0};          // calls to the host about this on their way
  std::atomic<bool> closed{false};
};
struct tn_dev_queue : std::enable_shared_from_this<tn_dev_queue> {
  tenon::gpu::Slot* slot = nullptr;
  std::shared_ptr<tenon::gpu::Opened> opened;
  std::unique_ptr<tenon::gpu::Stream> stream;
  std::shared_ptr<tn_dev_queue> self;     // until closed
  std::mutex completing, mutex;
  std::condition_variable more;
  std::deque<tenon::gpu::Deferred> deferred;
  std::deque<tenon::gpu::Pending> pending;
  bool closing = false;
  tenon::gpu::Memory error_word;          // 4 x u32, made when first needed
  bool has_error_word = false;
  std::shared_ptr<const tenon::gpu::KernelSpec> may_fail;  // whose failure the error word would tell
  std::vector<tenon::gpu::FailureWord> words;              // read back since the last signal
  bool failed = false;                    // something deferred since the last signal
  tn_diag failure{};
  std::thread waiter;
};
