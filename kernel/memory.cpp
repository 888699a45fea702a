#include "kernel/memory.h"

#include <algorithm>
#include <new>

#include "kernel/device.h"
#include "kernel/fp_env.h"
#include "kernel/queue.h"
#include "kernel/runtime.h"
#include "kernel/status.h"

namespace tenon::kernel {

uint32_t size_class_of(uint64_t bytes) {
  if (bytes <= 64) return 0;
  const uint32_t log = 63 - static_cast<uint32_t>(__builtin_clzll(bytes - 1));  // 2^log < bytes <= 2^(log+1) region
  const uint64_t step = uint64_t{1} << (log - 2);
  const uint32_t quarter = static_cast<uint32_t>((bytes - 1 - (uint64_t{1} << log)) / step);
  return (log - 6) * 4 + quarter + 1;
}

uint64_t size_class_bytes(uint32_t size_class) {
  if (size_class == 0) return 64;
  const uint32_t log = (size_class - 1) / 4 + 6, quarter = (size_class - 1) % 4;
  return (uint64_t{1} << log) + (quarter + 1) * (uint64_t{1} << (log - 2));
}

const void* QueuePool::thread_token() {
  static thread_local char token __attribute__((tls_model("initial-exec")));
  return &token;
}

Runtime* QueuePool::runtime() const { return device_.device_->runtime; }

// ---- DevicePool ---------------------------------------------------------------------------------------------------

void DevicePool::add(QueuePool* pool) {
  std::lock_guard lock(mutex_);
  pools_.push_back(pool);
}

void DevicePool::remove(QueuePool* pool) {
  std::lock_guard lock(mutex_);
  std::erase(pools_, pool);
}

void DevicePool::set_limit(uint64_t bytes) {
  limit_ = bytes;
  peak_ = reserved_.load();
}

uint64_t DevicePool::trim_others(QueuePool* keep) {
  std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (QueuePool* pool : pools_)
    if (pool != keep && pool->idle_for_trim()) bytes += pool->trim();
  return bytes;
}

tn_status DevicePool::allocate(uint64_t bytes, QueuePool* asking, tn_buffer* out, tn_diag* diag) {
  const tn_plugin* table = device_->plugin->table;
  for (int attempt = 0;; ++attempt) {
    const uint64_t limit = limit_.load(std::memory_order_relaxed);
    const uint64_t before = reserved_.fetch_add(bytes);
    tn_diag inner{};
    tn_status status = TN_E_OOM;
    TraceSpan span(device_->runtime->hooks(), TN_EVENT_ALLOC);
    if (span.on()) span.event().device = device_->index, span.event().bytes = bytes, span.event().name = "alloc";
    if (limit == 0 || before + bytes <= limit) status = call_plugin(table->alloc, device_->handle, device_->default_space, bytes, 64, out, &inner);
    if (status == TN_OK) {
      n_allocs_.fetch_add(1, std::memory_order_relaxed);
      uint64_t peak = peak_.load();
      while (before + bytes > peak && !peak_.compare_exchange_weak(peak, before + bytes)) {}
      return TN_OK;
    }
    if (status == TN_E_DEVICE_LOST) device_->lose(&inner);
    span.drop();
    reserved_.fetch_sub(bytes);
    if (status != TN_E_OOM) {
      if (diag) *diag = inner;
      return status;
    }
    if (attempt == 0 && (asking ? asking->trim() : 0) + trim_others(asking) > 0) continue;
    if (attempt < 8) {
      const Hooks::Use hooks(device_->runtime->hooks());
      if (hooks->oom && hooks->oom(hooks->ctx, device_->index, bytes)) continue;
    }
    n_oom_.fetch_add(1, std::memory_order_relaxed);
    tn_memory_info info{};
    stats(&info);
    return fail(diag, TN_E_OOM, id(kMem, 1), "%s is out of memory\nwhy: %.1f MiB asked, %.1f MiB held by live tensors, limit %.1f MiB%s\ntry: use a smaller batch, or free tensors",
                device_->name, static_cast<double>(bytes) / 1048576, static_cast<double>(info.in_use) / 1048576,
                static_cast<double>(limit ? limit : device_->info.mem_total_bytes) / 1048576, limit ? " (set by memory_limit)" : "");
  }
}

void DevicePool::free(const tn_buffer& buffer) {
  reserved_.fetch_sub(buffer.bytes);
  call_plugin(device_->plugin->table->free, device_->handle, &buffer);
}

void DevicePool::stats(tn_memory_info* out) const {
  std::lock_guard lock(mutex_);
  uint64_t pooled = 0;
  for (const QueuePool* pool : pools_) pooled += pool->pooled();
  const uint64_t reserved = reserved_.load();
  out->limit = limit_.load();
  out->pooled = std::min(pooled, reserved);
  out->in_use = reserved - out->pooled;
  out->peak = peak_.load();
  out->largest_free = 0;
  out->n_allocs = n_allocs_.load();
  out->n_oom = n_oom_.load();
}

// ---- QueuePool ----------------------------------------------------------------------------------------------------

QueuePool::QueuePool(DevicePool& device, tn_queue* queue, bool thread_bound)
    : device_(device), queue_(queue), thread_bound_(thread_bound) {
  device_.add(this);
}

QueuePool::~QueuePool() {
  device_.remove(this);
  trim();
}

// Both under the device's lock, which trim_others holds: a pool is never trimmed while a thread takes it over.
void QueuePool::adopt() {
  std::lock_guard lock(device_.mutex_);
  owner_.store(thread_token(), std::memory_order_relaxed);
}

void QueuePool::abandon() {
  std::lock_guard lock(device_.mutex_);
  owner_.store(nullptr, std::memory_order_relaxed);
}

Storage* QueuePool::take_slow(uint32_t size_class, tn_diag* diag) {
  {
    std::unique_lock lock(shared_mutex_, std::defer_lock);
    if (!thread_bound_) lock.lock();
    Storage** lists = thread_bound_ ? free_ : shared_;
    drain(lists);
    if (Storage* s = lists[size_class]) {
      lists[size_class] = s->next;
      pooled_.store(pooled_.load(std::memory_order_relaxed) - s->buffer.bytes, std::memory_order_relaxed);
      return s;
    }
  }
  Storage* s = new (std::nothrow) Storage;
  if (!s) {
    fail(diag, TN_E_OOM, id(kMem, 2), "host memory is exhausted\nwhy: no room for a tensor handle\ntry: free tensors");
    return nullptr;
  }
  if (device_.allocate(size_class_bytes(size_class), this, &s->buffer, diag)) {
    delete s;
    return nullptr;
  }
  s->size_class = size_class;
  s->device = queue_->device->index;
  s->home = this;
  s->base.storage = s;
  s->base.view.handle = s->buffer.handle;
  s->base.view.host = s->buffer.host;
  live_.fetch_add(1, std::memory_order_relaxed);
  return s;
}

void QueuePool::give(Storage* s) {
  if (thread_bound_ && owner_.load(std::memory_order_relaxed) == thread_token()) {
    s->next = free_[s->size_class];
    free_[s->size_class] = s;
    pooled_.store(pooled_.load(std::memory_order_relaxed) + s->buffer.bytes, std::memory_order_relaxed);
    return;
  }
  Storage* head = returned_.load(std::memory_order_relaxed);
  do s->next = head;
  while (!returned_.compare_exchange_weak(head, s, std::memory_order_release, std::memory_order_relaxed));
}

void QueuePool::drain(Storage** lists) {
  Storage* s = returned_.exchange(nullptr, std::memory_order_acquire);
  while (s) {
    Storage* next = s->next;
    s->next = lists[s->size_class];
    lists[s->size_class] = s;
    pooled_.store(pooled_.load(std::memory_order_relaxed) + s->buffer.bytes, std::memory_order_relaxed);
    s = next;
  }
}

// Whether no work uses the pool's blocks any more. Never waits for a lock: the holder may wait for us. A value of its own is
// signalled, since the middle of a plan may be asking for memory, and what that launched has no value yet.
bool QueuePool::settle() {
  if (!queue_->timeline) return true;  // works inline, or is closed
  std::unique_lock lock(queue_->lock, std::try_to_lock);
  if (!lock) return false;
  const uint64_t value = queue_->submitted.load(std::memory_order_relaxed) + 1;
  queue_->submitted.store(value, std::memory_order_relaxed);
  log_work(queue_, value, nullptr, 0);
  tn_diag ignored;
  return wait_queue(queue_, value, TN_FOREVER, &ignored) == TN_OK || queue_->lost;
}

uint64_t QueuePool::trim() {
  if (!settle()) return 0;
  if (thread_bound_) return trim(free_);
  std::lock_guard lock(shared_mutex_);
  return trim(shared_);
}

uint64_t QueuePool::trim(Storage** lists) {
  drain(lists);
  uint64_t bytes = 0;
  for (uint32_t size_class = 0; size_class < kSizeClasses; ++size_class) {
    while (Storage* s = lists[size_class]) {
      lists[size_class] = s->next;
      bytes += s->buffer.bytes;
      device_.free(s->buffer);
      delete s;
      live_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  pooled_.store(pooled_.load(std::memory_order_relaxed) - bytes, std::memory_order_relaxed);
  return bytes;
}

// ---- storages and tensors -----------------------------------------------------------------------------------------

void release_storage(Storage* s) {
  if (s->home) {
    s->home->give(s);
    return;
  }
  if (s->drop) s->drop(s->drop_ctx, s->buffer.host);
  delete s;
}

void release_tensor(tn_tensor* t) {
  Storage* s = t->storage;
  if (t != &s->base) delete t;
  unref_storage(s);
}

tn_tensor* make_view(Storage* s, const tn_type& type, uint32_t type_id, uint64_t offset_bytes) {
  tn_tensor* t = new (std::nothrow) tn_tensor;
  if (!t) return nullptr;
  s->refs.fetch_add(1, std::memory_order_relaxed);
  t->type_id = type_id;
  t->type = type;
  t->storage = s;
  t->view.handle = s->buffer.handle;
  t->view.offset = offset_bytes;
  t->view.bytes = s->buffer.bytes - offset_bytes;
  t->view.host = s->buffer.host ? static_cast<char*>(s->buffer.host) + offset_bytes : nullptr;
  return t;
}

}  // namespace tenon::kernel
