// kernel/memory.h - device memory as counted storages, pooled by size class per queue.
//
// A queue's pool hands a freed block out again in queue order, which is always safe for that queue. Only the thread that a
// queue is bound to touches the free lists; a release on another thread goes to a lock-free return list that it drains.
// The pool of a queue that any thread may use keeps its blocks in lists under a lock, so that others can trim it.
// Owns: a DevicePool owns what it got from the plugin; pools return blocks to it on trim or when their queue ends.
#pragma once
#include <tenon/plugin.h>
#include <tenon/runtime.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "kernel/type_table.h"

namespace tenon::kernel {
struct Device;
class Runtime;
struct Storage;
class QueuePool;
}  // namespace tenon::kernel

// A counted handle: type and place of a piece of a storage.
struct tn_tensor {
  std::atomic<uint32_t> refs{1};
  uint32_t type_id = 0;
  tenon::kernel::Storage* storage = nullptr;
  tn_view view{};   // ready for kernels
  tn_type type{};   // own copy: ids may grow stale, types do not
};

namespace tenon::kernel {

struct Storage {
  std::atomic<uint32_t> refs{1};
  uint32_t size_class = 0;
  uint32_t device = 0;
  std::atomic<uint32_t> ready_queue{0};    // queue and value of the last write
  std::atomic<uint64_t> ready_value{0}, writes{0};
  tn_buffer buffer{};
  QueuePool* home = nullptr;               // nullptr: not pooled (host memory given by the app)
  void (*drop)(void* ctx, void* data) = nullptr;
  void* drop_ctx = nullptr;
  Storage* next = nullptr;
  tn_tensor base;                          // the handle a fresh result gets, so that a result costs one object
};

// Size classes: four steps per power of two, at least 64 bytes.
uint32_t size_class_of(uint64_t bytes);
uint64_t size_class_bytes(uint32_t size_class);
constexpr uint32_t kSizeClasses = 4 * 42;

// What is allocated on one device: limit, counters, and the plugin calls.
class DevicePool {
 public:
  void open(Device* device) { device_ = device; }
  // Allocates from the plugin; keeps to the limit. On failure trims all pools of the device and the oom hook, then gives up.
  tn_status allocate(uint64_t bytes, QueuePool* asking, tn_buffer* out, tn_diag* diag);
  void free(const tn_buffer& buffer);
  void add(QueuePool* pool);
  void remove(QueuePool* pool);
  void set_limit(uint64_t bytes);
  uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  void stats(tn_memory_info* out) const;
  uint64_t trim_others(QueuePool* keep);  // asks every idle pool to give its blocks back

 private:
  friend class QueuePool;
  Device* device_ = nullptr;
  mutable std::mutex mutex_;
  std::vector<QueuePool*> pools_;
  std::atomic<uint64_t> limit_{0}, reserved_{0}, peak_{0}, n_allocs_{0}, n_oom_{0};
};

class QueuePool {
 public:
  QueuePool(DevicePool& device, tn_queue* queue, bool thread_bound);
  ~QueuePool();

  // A storage of at least `bytes`; its base tensor has one reference, as has the storage. nullptr on failure.
  Storage* take(uint32_t size_class, tn_diag* diag) {
    Storage* s = free_[size_class];
    if (__builtin_expect(s != nullptr, 1)) {
      free_[size_class] = s->next;
      pooled_.store(pooled_.load(std::memory_order_relaxed) - s->buffer.bytes, std::memory_order_relaxed);
      return s;
    }
    return take_slow(size_class, diag);
  }
  void give(Storage* s);  // any thread
  void adopt();    // the calling thread becomes the owner
  void abandon();  // the owner is gone: others may trim this pool
  // Blocks back to the device; bytes. Bound to a thread: its owner only, or nobody uses the queue. Waits for the queue's work
  // first, which may still use what was handed back; gives back nothing (0) while another thread works with the queue.
  uint64_t trim();
  uint64_t pooled() const { return pooled_.load(std::memory_order_relaxed); }
  uint64_t live() const { return live_.load(std::memory_order_relaxed); }  // storages handed out
  bool idle_for_trim() const { return !thread_bound_ || owner_.load(std::memory_order_relaxed) == nullptr; }
  static const void* thread_token();
  Runtime* runtime() const;

 private:
  Storage* take_slow(uint32_t size_class, tn_diag* diag);
  void drain(Storage** lists);  // returns from other threads
  uint64_t trim(Storage** lists);
  bool settle();
  DevicePool& device_;
  tn_queue* const queue_;
  const bool thread_bound_;
  std::atomic<const void*> owner_{nullptr};
  Storage* free_[kSizeClasses] = {};     // of the owner; stays empty in a pool bound to no thread
  std::mutex shared_mutex_;
  Storage* shared_[kSizeClasses] = {};   // of a pool bound to no thread
  std::atomic<uint64_t> pooled_{0}, live_{0};
  alignas(64) std::atomic<Storage*> returned_{nullptr};
};

void release_storage(Storage* s);
inline void unref_storage(Storage* s) {
  if (s->refs.load(std::memory_order_acquire) == 1 || s->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) release_storage(s);
}
void release_tensor(tn_tensor* t);  // last reference gone
inline void unref_tensor(tn_tensor* t) {
  if (t->refs.load(std::memory_order_acquire) == 1 || t->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) release_tensor(t);
}
// A new handle on part of a storage; takes a reference to it.
tn_tensor* make_view(Storage* s, const tn_type& type, uint32_t type_id, uint64_t offset_bytes);

inline bool is_type_only(const tn_tensor* t) { return (reinterpret_cast<uintptr_t>(t) & 1) != 0; }
inline uint32_t type_only_id(const tn_tensor* t) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(t) >> 1); }

}  // namespace tenon::kernel
