// backends/gpu_common/timeline.cpp - timelines: values reached, fences on their way to them, who waits.
#include <algorithm>
#include <chrono>

#include "backends/gpu_common/state.h"

namespace tenon::gpu {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLookUp{10};

tn_status not_reached(const tn_dev_timeline* t, uint64_t value, uint64_t timeout_ns, tn_diag* diag) {
  return report(diag, TN_E_TIMEOUT, kErrTimeout, "wait: not reached in time\nwhy: the timeline stands at %llu after %llu ns, waiting for %llu\ntry: wait longer, or find the work that never signals", ull(t->value),
                ull(timeout_ns), ull(value));
}

// Waits in the caller's thread for the very fence, which spares a change of threads; else for news of the timeline.
tn_status wait_here(tn_dev_timeline* t, uint64_t value, uint64_t timeout_ns, tn_diag* diag) {
  const bool for_ever = timeout_ns >= uint64_t{365} * 86400 * 1000000000;
  const auto end = Clock::now() + std::chrono::nanoseconds(for_ever ? 0 : timeout_ns);
  std::unique_lock lock(t->mutex);
  while (t->value < value) {
    if (t->slot->lost.load(std::memory_order_acquire)) break;
    const auto now = Clock::now();
    const auto point = std::find_if(t->points.begin(), t->points.end(), [&](const tn_dev_timeline::Point& p) { return p.value >= value; });
    const std::shared_ptr<tn_dev_queue> queue = point != t->points.end() ? point->queue.lock() : nullptr;
    if (queue == nullptr || point->fence == nullptr) {
      if (!for_ever && now >= end) return not_reached(t, value, timeout_ns, diag);
      t->changed.wait_until(lock, for_ever ? now + kLookUp : std::min<Clock::time_point>(end, now + kLookUp));
      continue;
    }
    const std::shared_ptr<Fence> fence = point->fence;
    lock.unlock();
    const uint64_t left = for_ever ? TN_FOREVER : static_cast<uint64_t>(std::max<int64_t>(0, std::chrono::nanoseconds(end - now).count()));
    tn_diag words{};
    const bool passed = fence->wait(left, &words) != TN_E_TIMEOUT;
    if (passed) complete_ready(queue.get());
    lock.lock();
    if (!passed && !for_ever && t->value < value) return not_reached(t, value, timeout_ns, diag);
    if (passed && t->value < value) t->changed.wait_for(lock, std::chrono::microseconds(50));
  }
  return t->slot->alive(diag);
}

void subscribe(tn_dev_timeline* t, tn_dev_queue* q) {
  for (const auto& weak : t->waiting)
    if (weak.lock().get() == q) return;
  t->waiting.push_back(q->weak_from_this());
}

}  // namespace

// Later work of the queue comes after the value; deferred when the device does not know the value yet. Under the queue's mutex.
tn_status wait_there(tn_dev_queue* q, tn_dev_timeline* t, uint64_t value, bool* blocked, tn_diag* diag) {
  *blocked = false;
  std::shared_ptr<Fence> fence;
  {
    const std::lock_guard lock(t->mutex);
    if (t->value >= value || t->slot->lost.load(std::memory_order_acquire)) return TN_OK;
    for (const tn_dev_timeline::Point& p : t->points)
      if (p.value >= value && p.opened == q->opened.get() && p.fence != nullptr) {
        fence = p.fence;
        if (p.queue.lock().get() == q) return TN_OK;  // its own earlier work
        break;
      }
    if (fence == nullptr) {
      subscribe(t, q);
      *blocked = true;
      return TN_OK;
    }
  }
  tn_diag words{};
  const tn_status s = q->stream->wait(fence, &words);
  if (s == TN_E_UNSUPPORTED) {
    const std::lock_guard lock(t->mutex);
    if (t->value >= value) return TN_OK;
    subscribe(t, q);
    *blocked = true;
    return TN_OK;
  }
  return q->slot->told(*q->opened->device, s, words, diag);
}

void advance(tn_dev_timeline* t, uint64_t value, const tn_diag* failure, Aftermath* after) {
  const std::lock_guard lock(t->mutex);
  t->value = std::max(t->value, value);
  t->asked = std::max(t->asked, value);
  if (failure != nullptr) t->failures.push_back({value, *failure});
  while (!t->points.empty() && t->points.front().value <= value) t->points.pop_front();
  for (const auto& weak : t->waiting)
    if (auto q = weak.lock()) after->resume.push_back(std::move(q));
  t->waiting.clear();
  if (!t->closed.load()) after->progress.push_back({t->shared_from_this(), value});
  t->changed.notify_all();
}

void Aftermath::run() {
  while (!progress.empty() || !resume.empty()) {
    const Aftermath now = std::move(*this);
    *this = {};
    for (const Progress& p : now.progress) {
      const tn_host* host = p.timeline->slot->owner->host;
      p.timeline->told.fetch_add(1);
      if (!p.timeline->closed.load() && host->progress != nullptr) host->progress(host->ctx, p.timeline.get(), p.value);
      p.timeline->told.fetch_sub(1);
    }
    for (const auto& q : now.resume) {
      const std::lock_guard lock(q->mutex);
      run_deferred(q.get(), this);
    }
  }
}

tn_status timeline_open(tn_device* device, uint64_t initial, tn_dev_timeline** out, tn_diag* diag) {
  return guarded(diag, [&] {
    Slot* slot = device->slot;
    if (tn_status s = slot->alive(diag); s != TN_OK) return s;
    auto t = std::make_shared<tn_dev_timeline>();
    t->slot = slot, t->opened = device->opened, t->value = t->asked = initial;
    {
      const std::lock_guard lock(slot->mutex);
      slot->timelines.push_back(t.get());
    }
    t->self = t;
    slot->owner->live.fetch_add(1);
    *out = t.get();
    return tn_status{TN_OK};
  });
}

void timeline_close(tn_dev_timeline* t) {
  const std::shared_ptr<tn_dev_timeline> keep = std::move(t->self);
  Slot* slot = t->slot;
  t->closed.store(true);
  while (t->told.load() != 0) std::this_thread::yield();
  {
    const std::lock_guard lock(slot->mutex);
    std::erase(slot->timelines, t);
  }
  slot->owner->live.fetch_sub(1);
}

tn_status wait(tn_dev_queue* q, tn_dev_timeline* t, uint64_t value, uint64_t timeout_ns, tn_diag* diag) {
  return guarded(diag, [&] {
    if (q == nullptr) return wait_here(t, value, timeout_ns, diag);
    if (tn_status s = q->slot->alive(diag); s != TN_OK) return s;
    const std::lock_guard lock(q->mutex);
    bool blocked = true;
    if (q->deferred.empty())
      if (tn_status s = wait_there(q, t, value, &blocked, diag); s != TN_OK) return s;
    if (!blocked) return tn_status{TN_OK};
    Deferred d;
    d.kind = Deferred::Wait, d.timeline = t->shared_from_this(), d.value = value;
    q->deferred.push_back(std::move(d));
    return tn_status{TN_OK};
  });
}

tn_status query(tn_dev_timeline* t, uint64_t after, uint64_t* out_value, uint64_t* out_failed, tn_diag* diag) {
  return guarded(diag, [&] {
    if (tn_status s = t->slot->alive(diag); s != TN_OK) return s;
    const std::lock_guard lock(t->mutex);
    if (out_value != nullptr) *out_value = t->value;
    const auto failed = std::find_if(t->failures.begin(), t->failures.end(), [&](const tn_dev_timeline::Failure& f) { return f.value > after; });
    if (failed != t->failures.end() && diag != nullptr) *diag = failed->diag;
    if (out_failed != nullptr) *out_failed = failed != t->failures.end() ? failed->value : 0;
    // The core asks with the last value it knows to be dealt with, so older failures will not be asked for again.
    if (t->failures.size() > 4096) t->failures.erase(t->failures.begin(), failed);
    return tn_status{TN_OK};
  });
}

}  // namespace tenon::gpu
