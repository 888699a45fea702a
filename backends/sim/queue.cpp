// backends/sim/queue.cpp - in-order queues on worker threads; timelines.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <system_error>

#include "backends/sim/device.h"
#include "ops/reference/diag.h"

namespace tenon::sim {
using reference::fail;
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLookUp{10};
unsigned long long ull(uint64_t x) { return x; }

// Advances the timeline and tells everybody. `failure` NULL = good.
tn_status advance(tn_dev_timeline* t, uint64_t value, const tn_diag* failure, tn_diag* diag) {
  t->users.fetch_add(1);
  tn_status status = TN_OK;
  {
    const std::lock_guard lock(t->mutex);
    if (value < t->value)
      status = fail(diag, TN_E_ARG, reference::kErrTimelineBackwards, "signal: a timeline only grows\nwhy: it stands at %llu, asked for %llu\ntry: signal a larger value", ull(t->value), ull(value));
    else t->value = value;
    if (status == TN_OK && failure != nullptr) t->failures.push_back({value, *failure});
    t->advanced.notify_all();
  }
  const tn_host* host = t->owner->host;
  if (status == TN_OK && host->progress != nullptr) host->progress(host->ctx, t, value);
  t->users.fetch_sub(1);
  return status;
}

void simulate_latency(uint64_t ns) {
  if (ns == 0) return;
  const auto end = Clock::now() + std::chrono::nanoseconds(ns);
  if (ns > 100000) std::this_thread::sleep_until(end);
  while (Clock::now() < end) {}
}

// Planted: the usual NaN in a result of one f32 becomes 0.
void plant_wrong_result(const Work& w, const reference::Plan& plan) {
  if constexpr (kPlant != Plant::WrongResult) return;
  const uint32_t last = plan.head.n_views - 1;
  uint32_t bits = 0;
  if (w.data[last] == nullptr || plan.high[last] - plan.low[last] != 4) return;
  std::memcpy(&bits, w.data[last], sizeof bits);
  if ((bits & 0x7FFFFFFFu) == 0x7FC00000u) std::memset(w.data[last], 0, sizeof bits);
}

// Takes the device away if this launch is the one; false once it is lost.
bool survives_launch(tn_dev_queue* q) {
  tn_instance* self = q->owner;
  Health& health = self->health[q->device];
  if (self->lose_after != 0 && q->device == self->lose_device && health.launches.fetch_add(1) + 1 >= self->lose_after) {
    const std::unique_lock alone(health.running);
    health.lost.store(true, std::memory_order_release);
  }
  return !health.lost.load(std::memory_order_acquire);
}

void run_launch(tn_dev_queue* q, const Work& w) {
  if (!survives_launch(q)) return;
  simulate_latency(q->owner->latency_ns);
  const std::shared_lock running(q->owner->health[q->device].running);
  if (alive(q->owner, q->device, nullptr) != TN_OK) return;
  tn_diag diag{};
  const reference::Plan* plan = reference::plan_of(w.plan);
  if (plan->prepared->run({w.data, w.push.data(), plan->host}, &diag) == TN_OK || q->failed) return plant_wrong_result(w, *plan);
  q->failed = true, q->failure = diag;  // the first one is the cause
}

void run_copy(tn_dev_queue* q, const Work& w) {
  const std::shared_lock running(q->owner->health[q->device].running);
  if (alive(q->owner, q->device, nullptr) == TN_OK) std::memmove(w.dst, w.src, w.bytes);
}

// A lost device still signals, so that nobody waits for ever; who then asks the timeline is told of the loss.
void run_signal(tn_dev_queue* q, const Work& w) {
  advance(w.timeline, w.value, q->failed ? &q->failure : nullptr, nullptr);
  q->failed = false;
}

void run_wait(tn_dev_queue* q, const Work& w) {
  if constexpr (kPlant == Plant::MissingBarrier) return;
  std::unique_lock lock(w.timeline->mutex);
  // Looks up from time to time, so that closing a queue never hangs on a value nobody will signal.
  while (w.timeline->value < w.value && !q->closing.load() && !w.timeline->closing.load() && alive(q->owner, w.timeline->device, nullptr) == TN_OK) w.timeline->advanced.wait_for(lock, kLookUp);
}

void worker_loop(tn_dev_queue* q) {
  for (;;) {
    Work w;
    {
      std::unique_lock lock(q->mutex);
      q->more.wait(lock, [&] { return !q->work.empty(); });
      w = std::move(q->work.front());
      q->work.pop_front();
    }
    switch (w.kind) {
      case Work::Launch: run_launch(q, w); break;
      case Work::Copy: run_copy(q, w); break;
      case Work::Signal: run_signal(q, w); break;
      case Work::Wait: run_wait(q, w); break;
      case Work::Stop: return;
    }
    if (w.timeline != nullptr) w.timeline->users.fetch_sub(1);
  }
}

tn_status no_memory(tn_diag* diag, const char* what) {
  return fail(diag, TN_E_OOM, reference::kErrOutOfMemory, "%s: no memory or thread left\nwhy: the system refused\ntry: close what is not needed", what);
}

// One side of a copy: host memory (handle 0) or simulated memory.
tn_status copy_side(tn_instance* self, const tn_view& view, uint64_t bytes, const char* what, void** out, tn_diag* diag) {
  if (view.handle != 0) return locate(self, view, 0, static_cast<int64_t>(bytes), what, out, diag);
  *out = view.host;
  if (view.host != nullptr) return TN_OK;
  return fail(diag, TN_E_ARG, reference::kErrNoHostPointer, "%s: host memory without an address\nwhy: handle and host are both 0\ntry: set host", what);
}

}  // namespace

void enqueue(tn_dev_queue* q, Work&& w) {
  const std::lock_guard lock(q->mutex);
  q->work.push_back(std::move(w));
  if (tn_dev_timeline* named = q->work.back().timeline) named->users.fetch_add(1);
  q->more.notify_one();
}

tn_status copy(tn_dev_queue* q, const tn_view* dst, const tn_view* src, tn_diag* diag) {
  if (tn_status s = alive(q->owner, q->device, diag); s != TN_OK) return s;
  if (dst->bytes == 0) return TN_OK;
  void *to = nullptr, *from = nullptr;
  if (tn_status s = copy_side(q->owner, *dst, dst->bytes, "copy destination", &to, diag); s != TN_OK) return s;
  if (tn_status s = copy_side(q->owner, *src, dst->bytes, "copy source", &from, diag); s != TN_OK) return s;
  try {
    Work w;
    w.kind = Work::Copy, w.dst = to, w.src = from, w.bytes = dst->bytes;
    enqueue(q, std::move(w));
    return TN_OK;
  } catch (const std::bad_alloc&) {
    return no_memory(diag, "copy");
  }
}

tn_status queue_open(tn_device* device, uint32_t, int32_t, tn_dev_queue** out, tn_diag* diag) {
  if (tn_status s = alive(device->owner, device->index, diag); s != TN_OK) return s;
  tn_dev_queue* q = nullptr;
  try {
    q = new tn_dev_queue;
    q->owner = device->owner, q->device = device->index;
    q->worker = std::thread(worker_loop, q);
  } catch (const std::exception&) {
    delete q;
    return no_memory(diag, "queue_open");
  }
  device->owner->live.fetch_add(1);
  *out = q;
  return TN_OK;
}

void queue_close(tn_dev_queue* q) {
  q->closing.store(true);
  {
    const std::lock_guard lock(q->mutex);
    q->work.emplace_back();
    q->more.notify_one();
  }
  q->worker.join();
  q->owner->live.fetch_sub(1);
  delete q;
}

tn_status timeline_open(tn_device* device, uint64_t initial, tn_dev_timeline** out, tn_diag* diag) {
  if (tn_status s = alive(device->owner, device->index, diag); s != TN_OK) return s;
  auto* t = new (std::nothrow) tn_dev_timeline;
  if (t == nullptr) return no_memory(diag, "timeline_open");
  t->owner = device->owner, t->device = device->index, t->value = initial;
  t->owner->live.fetch_add(1);
  *out = t;
  return TN_OK;
}

void timeline_close(tn_dev_timeline* t) {
  t->closing.store(true);
  while (t->users.load() != 0) std::this_thread::yield();
  t->owner->live.fetch_sub(1);
  delete t;
}

tn_status signal(tn_dev_queue* q, tn_dev_timeline* t, uint64_t value, tn_diag* diag) {
  if (tn_status s = alive(t->owner, q != nullptr ? q->device : t->device, diag); s != TN_OK) return s;
  if (q == nullptr) return advance(t, value, nullptr, diag);
  try {
    Work w;
    w.kind = Work::Signal, w.timeline = t, w.value = value;
    enqueue(q, std::move(w));
    return TN_OK;
  } catch (const std::bad_alloc&) {
    return no_memory(diag, "signal");
  }
}

tn_status wait(tn_dev_queue* q, tn_dev_timeline* t, uint64_t value, uint64_t timeout_ns, tn_diag* diag) {
  if (q != nullptr) {
    if (tn_status s = alive(q->owner, q->device, diag); s != TN_OK) return s;
    try {
      Work w;
      w.kind = Work::Wait, w.timeline = t, w.value = value;
      enqueue(q, std::move(w));
      return TN_OK;
    } catch (const std::bad_alloc&) {
      return no_memory(diag, "wait");
    }
  }
  std::unique_lock lock(t->mutex);
  // A loss tells no timeline: where one may come, a wait looks up from time to time.
  const bool watch = t->owner->lose_after != 0;
  const auto there = [&] { return t->value >= value || (watch && alive(t->owner, t->device, nullptr) != TN_OK); };
  // A year is beyond any wait and keeps the clock arithmetic from overflowing.
  if (timeout_ns >= uint64_t{365} * 86400 * 1000000000) {
    if (!watch) t->advanced.wait(lock, there);
    while (!there()) t->advanced.wait_for(lock, kLookUp);
    return alive(t->owner, t->device, diag);
  }
  const auto end = Clock::now() + std::chrono::nanoseconds(timeout_ns);
  while (!there() && Clock::now() < end) t->advanced.wait_until(lock, watch ? std::min(end, Clock::now() + kLookUp) : end);
  if (there()) return alive(t->owner, t->device, diag);
  return fail(diag, TN_E_TIMEOUT, reference::kErrTimeout, "wait: not reached in time\nwhy: the timeline stands at %llu after %llu ns, waiting for %llu\ntry: wait longer, or find the work that never signals",
              ull(t->value), ull(timeout_ns), ull(value));
}

tn_status query(tn_dev_timeline* t, uint64_t after, uint64_t* out_value, uint64_t* out_failed, tn_diag* diag) {
  if (tn_status s = alive(t->owner, t->device, diag); s != TN_OK) return s;
  const std::lock_guard lock(t->mutex);
  if (out_value != nullptr) *out_value = t->value;
  uint64_t failed = 0;
  for (const auto& f : t->failures) {
    if (f.value <= after) continue;
    failed = f.value;
    if (diag != nullptr) *diag = f.diag;
    break;
  }
  if (out_failed != nullptr) *out_failed = failed;
  // The core asks with the last value it knows to be dealt with, so older failures will not be asked for again.
  size_t old = 0;
  while (old < t->failures.size() && t->failures.size() > 4096 && t->failures[old].value <= after) ++old;
  t->failures.erase(t->failures.begin(), t->failures.begin() + static_cast<std::ptrdiff_t>(old));
  return TN_OK;
}

}  // namespace tenon::sim
