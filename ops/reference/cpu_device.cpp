// ops/reference/cpu_device.cpp
#include "ops/reference/cpu_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "ops/reference/cpu_info.h"
#include "ops/reference/diag.h"
#include "ops/reference/dtype.h"

struct tn_device { tn_instance* owner; };
struct tn_dev_queue { tn_instance* owner; };
struct tn_dev_timeline {
  tn_instance* owner;
  std::atomic<uint64_t> value;
  std::atomic<uint32_t> waiters{0};
  std::mutex mutex;
  std::condition_variable advanced;
};

namespace tenon::reference {
namespace {

constexpr uint64_t kHugeBytes = 2u << 20;

template <class T> T* counted(T* object, tn_instance* owner) {
  if (object != nullptr) owner->live.fetch_add(1, std::memory_order_relaxed);
  return object;
}
tn_status no_memory(tn_diag* diag, const char* what) {
  return fail(diag, TN_E_OOM, kErrOutOfMemory, "%s: no memory\nwhy: the heap is exhausted\ntry: close what is not needed", what);
}

}  // namespace

tn_status cpu_devices(tn_instance*, tn_device_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag*) {
  *out_n = 1;
  if (cap == 0) return TN_OK;
  tn_device_info info{};
  info.size = static_cast<uint32_t>(std::min<size_t>(stride, sizeof info));
  info.kind = TN_KIND_CPU, info.flags = TN_DEVICE_INLINE;
  info.mem_total_bytes = memory_total_bytes();
  info.mem_free_bytes = std::min(memory_free_bytes(), info.mem_total_bytes);
  info.dtype_storage = kMoveMask;
  info.dtype_compute = kIntMask | bit(TN_BOOL) | bit(TN_F32) | bit(TN_F64);
  info.dtype_matrix = 0;
  info.n_spaces = 1;
  cpu_name(info.name, sizeof info.name);
  std::snprintf(info.driver, sizeof info.driver, "built in");
  std::memcpy(out, &info, info.size);
  return TN_OK;
}

tn_status cpu_device_caps(tn_instance*, uint32_t index, tn_cap* out, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  if (index != 0) return fail(diag, TN_E_NOT_FOUND, kErrNoSuchDevice, "caps: no device %u\nwhy: this plugin has 1 device, cpu:0\ntry: use index 0", index);
  *out_n = cpu_caps(out, cap);
  return TN_OK;
}

tn_status cpu_device_open(tn_instance* self, uint32_t index, const tn_ext* options, tn_device** out, tn_diag* diag) {
  if (index != 0) return fail(diag, TN_E_NOT_FOUND, kErrNoSuchDevice, "device_open: no device %u\nwhy: this plugin has 1 device, cpu:0\ntry: use index 0", index);
  for (const tn_ext* e = options; e != nullptr; e = e->next)
    if ((e->id & TN_EXT_CRITICAL) != 0)
      return fail(diag, TN_E_EXT, kErrConfig, "device_open: unknown critical option\nwhy: extension id %u is not known here\ntry: leave it out", e->id);
  *out = counted(new (std::nothrow) tn_device{self}, self);
  return *out != nullptr ? TN_OK : no_memory(diag, "device_open");
}
void cpu_device_close(tn_device* device) {
  device->owner->live.fetch_sub(1, std::memory_order_relaxed);
  delete device;
}

tn_status cpu_spaces(tn_device*, tn_space_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag*) {
  *out_n = 1;
  if (cap == 0) return TN_OK;
  tn_space_info info{};
  info.size = static_cast<uint32_t>(std::min<size_t>(stride, sizeof info));
  info.kind = TN_SPACE_PAGEABLE;
  info.flags = TN_SPACE_HOST_VISIBLE | TN_SPACE_COHERENT;
  info.align_bytes = 64;
  info.max_alloc_bytes = info.budget_bytes = memory_total_bytes();
  std::memcpy(out, &info, info.size);
  return TN_OK;
}

tn_status cpu_alloc(tn_device* device, uint32_t space, uint64_t bytes, uint64_t align, tn_buffer* out, tn_diag* diag) {
  if (space != 0) return fail(diag, TN_E_ARG, kErrNoSuchSpace, "alloc: no memory space %u\nwhy: cpu devices have space 0 only\ntry: use space 0", space);
  if ((align & (align - 1)) != 0)
    return fail(diag, TN_E_ARG, kErrAlignment, "alloc: alignment %llu\nwhy: it is not a power of two\ntry: use 64", static_cast<unsigned long long>(align));
  const bool huge = bytes >= kHugeBytes;
  const uint64_t unit = std::max<uint64_t>(align, huge ? kHugeBytes : 64);
  void* p = nullptr;
  if (bytes > uint64_t{1} << 62 || posix_memalign(&p, unit, std::max<uint64_t>(bytes, 64)) != 0)
    return fail(diag, TN_E_OOM, kErrOutOfMemory, "alloc: out of host memory\nwhy: %llu bytes asked, %llu of %llu free\ntry: use a smaller batch, or release tensors",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(memory_free_bytes()),
                static_cast<unsigned long long>(memory_total_bytes()));
  // Small pages cost three times as much to touch first. A refusal only means small pages.
  if (huge) (void)madvise(p, bytes, MADV_HUGEPAGE);
  counted(p, device->owner);
  *out = {reinterpret_cast<uint64_t>(p), reinterpret_cast<uint64_t>(p), bytes, p, space, 0};
  return TN_OK;
}
void cpu_free(tn_device* device, const tn_buffer* buffer) {
  device->owner->live.fetch_sub(1, std::memory_order_relaxed);
  std::free(buffer->host);
}

tn_status cpu_copy(tn_dev_queue*, const tn_view* dst, const tn_view* src, tn_diag* diag) {
  if (dst->bytes == 0) return TN_OK;
  if (dst->host == nullptr || src->host == nullptr)
    return fail(diag, TN_E_ARG, kErrNoHostPointer, "copy: memory without a host address\nwhy: destination is %p, source is %p\ntry: use buffers of this device, or host memory", dst->host, src->host);
  std::memmove(dst->host, src->host, dst->bytes);
  return TN_OK;
}

tn_status cpu_queue_open(tn_device* device, uint32_t, int32_t, tn_dev_queue** out, tn_diag* diag) {
  *out = counted(new (std::nothrow) tn_dev_queue{device->owner}, device->owner);
  return *out != nullptr ? TN_OK : no_memory(diag, "queue_open");
}
void cpu_queue_close(tn_dev_queue* queue) {
  queue->owner->live.fetch_sub(1, std::memory_order_relaxed);
  delete queue;
}

tn_status cpu_timeline_open(tn_device* device, uint64_t initial, tn_dev_timeline** out, tn_diag* diag) {
  auto* t = counted(new (std::nothrow) tn_dev_timeline{device->owner, {initial}}, device->owner);
  *out = t;
  return t != nullptr ? TN_OK : no_memory(diag, "timeline_open");
}
void cpu_timeline_close(tn_dev_timeline* timeline) {
  timeline->owner->live.fetch_sub(1, std::memory_order_relaxed);
  delete timeline;
}

tn_status cpu_signal(tn_dev_queue*, tn_dev_timeline* t, uint64_t value, tn_diag* diag) {
  uint64_t now = t->value.load();
  do {
    if (value < now)
      return fail(diag, TN_E_ARG, kErrTimelineBackwards, "signal: a timeline only grows\nwhy: it stands at %llu, asked for %llu\ntry: signal a larger value",
                  static_cast<unsigned long long>(now), static_cast<unsigned long long>(value));
  } while (!t->value.compare_exchange_weak(now, value));
  // A waiter counts itself before it looks at the value, so either it sees this value or we see it.
  if (t->waiters.load() != 0) {
    const std::lock_guard lock(t->mutex);
    t->advanced.notify_all();
  }
  return TN_OK;
}

tn_status cpu_wait(tn_dev_queue*, tn_dev_timeline* t, uint64_t value, uint64_t timeout_ns, tn_diag* diag) {
  if (t->value.load() >= value) return TN_OK;
  const auto there = [&] { return t->value.load() >= value; };
  bool done = true;
  t->waiters.fetch_add(1);
  {
    std::unique_lock lock(t->mutex);
    // A year is beyond any wait and keeps the clock arithmetic from overflowing.
    if (timeout_ns >= uint64_t{365} * 86400 * 1000000000) t->advanced.wait(lock, there);
    else done = t->advanced.wait_for(lock, std::chrono::nanoseconds(timeout_ns), there);
  }
  t->waiters.fetch_sub(1);
  if (done) return TN_OK;
  return fail(diag, TN_E_TIMEOUT, kErrTimeout, "wait: not reached in time\nwhy: the timeline stands at %llu after %llu ns, waiting for %llu\ntry: wait longer, or find the work that never signals",
              static_cast<unsigned long long>(t->value.load()), static_cast<unsigned long long>(timeout_ns), static_cast<unsigned long long>(value));
}

tn_status cpu_query(tn_dev_timeline* t, uint64_t, uint64_t* out_value, uint64_t* out_failed, tn_diag*) {
  if (out_value != nullptr) *out_value = t->value.load();
  if (out_failed != nullptr) *out_failed = 0;  // launches that fail say so at once
  return TN_OK;
}

}  // namespace tenon::reference
