#include "kernel/queue.h"

#include <algorithm>

#include "kernel/fp_env.h"
#include "kernel/runtime.h"
#include "kernel/status.h"

namespace tenon::kernel {

bool goes_direct(const tn_queue& q) {
  const Hooks& hooks = q.runtime->hooks();
  return q.inline_work && !hooks.wants(TN_EVENT_CALL) && !hooks.wants(TN_EVENT_KERNEL);
}

// Timelines of devices go on where the queue stands.
tn_status connect_queue(tn_queue* q, int32_t priority, tn_diag* diag) {
  Device* device = q->device;
  if (device->verdict) return device->refuse(diag);
  if (tn_status s = device->open(diag)) return s;
  const tn_plugin* table = device->plugin->table;
  if (tn_status s = call_plugin(table->queue_open, device->handle, 0, priority, &q->dev_queue, diag)) return s;
  if (q->inline_work) return TN_OK;
  const uint64_t value = q->submitted.load();
  if (tn_status s = call_plugin(table->timeline_open, device->handle, value, &q->timeline, diag)) {
    call_plugin(table->queue_close, q->dev_queue);
    q->dev_queue = nullptr;
    return s;
  }
  q->signalled = value;
  q->confirmed = value;
  q->lost = false;
  return TN_OK;
}

tn_status open_queue(Runtime& rt, Device* device, int32_t priority, bool thread_bound, std::unique_ptr<tn_queue>* out, tn_diag* diag) {
  if (tn_status s = device->open(diag)) return s;  // a plugin that is opened by this may say anew how its devices work
  auto q = std::make_unique<tn_queue>();
  q->runtime = &rt;
  q->device = device;
  q->inline_work = device->inline_work;
  q->thread_bound = thread_bound;
  q->epoch = rt.epoch().load();
  if (tn_status s = connect_queue(q.get(), priority, diag)) return s;
  q->cache = std::make_unique<CacheEntry[]>(kCacheEntries);
  q->pool = std::make_unique<QueuePool>(device->memory, q.get(), thread_bound);
  if (thread_bound) q->pool->adopt();
  *out = std::move(q);
  return TN_OK;
}

void clear_cache(tn_queue* q) {
  for (uint32_t i = 0; i < kCacheEntries; ++i) {
    release_plan(q->cache[i].plan);
    q->cache[i] = CacheEntry{};
  }
  q->epoch = q->runtime->epoch().load();
}

void close_queue(tn_queue* q) {
  tn_diag ignored;
  if (!q->inline_work) wait_queue(q, q->submitted.load(), TN_FOREVER, &ignored);
  clear_cache(q);
  const tn_plugin* table = q->device->plugin->table;
  for (auto& [value, storage] : q->held) unref_storage(storage);
  q->held.clear();
  if (q->dev_queue) call_plugin(table->queue_close, q->dev_queue);  // first: of a lost device, work may be left that names the timeline
  if (q->timeline) call_plugin(table->timeline_close, q->timeline);
  q->timeline = nullptr;
  q->dev_queue = nullptr;
}

tn_status told(tn_queue* q, tn_status status, const tn_diag* words) {
  if (status == TN_E_DEVICE_LOST) q->lost = true, q->device->lose(words);
  return status;
}

tn_status signal_queue(tn_queue* q, tn_diag* diag) {
  std::lock_guard lock(q->lock);
  const uint64_t value = q->submitted.load();
  if (q->signalled >= value) return TN_OK;
  if (tn_status s = call_plugin(q->device->plugin->table->signal, q->dev_queue, q->timeline, value, diag)) return told(q, s, diag);
  q->signalled = value;
  return TN_OK;
}

namespace {

bool is_failed(const tn_queue* q, const tn_point& p, const tn_diag** cause) {
  for (const FailedWork& f : q->failures)
    if (p.queue == q->id && p.value == f.value) return *cause = &f.diag, true;
  return false;
}

void add_failure(tn_queue* q, const WorkRecord& w, bool depends, const tn_diag& cause) {
  FailedWork f;
  f.value = w.value;
  f.depends = depends;
  f.diag = cause;
  f.diag.status = depends ? TN_E_DEPENDS : TN_E_FAILED;
  if (w.note && !depends) append(&f.diag, "\nwhere: %s", w.note);
  q->failures.push_back(f);
  if (q->failures.size() > 4096) q->failures.pop_front();
}

// A failed value names all work since the signal before it.
void note_failure(tn_queue* q, uint64_t lo, uint64_t hi, const tn_diag& cause) {
  for (const WorkRecord& w : q->log)
    if (w.value > lo && w.value <= hi) add_failure(q, w, false, cause);
}

// What read a failed value depends on it, and so on forward.
void mark_dependents(tn_queue* q, uint64_t reached) {
  if (q->failures.empty()) return;
  for (const WorkRecord& w : q->log) {
    if (w.value > reached) break;
    const tn_diag* cause = nullptr;
    bool own = false;
    for (const FailedWork& f : q->failures) own |= f.value == w.value;
    for (size_t i = 0; !own && i < w.inputs.size(); ++i)
      if (is_failed(q, w.inputs[i], &cause)) {
        const tn_diag copy = *cause;
        add_failure(q, w, true, copy);
        break;
      }
  }
}

tn_status collect(tn_queue* q, uint64_t reached, tn_diag* diag) {
  uint64_t value = 0, failed = 0, after = q->confirmed;
  for (;;) {
    tn_diag cause{};
    cause.size = sizeof cause;
    if (tn_status s = call_plugin(q->device->plugin->table->query, q->timeline, after, &value, &failed, &cause)) {
      if (diag) *diag = cause;
      return told(q, s, &cause);
    }
    if (failed == 0 || failed > reached) break;
    note_failure(q, after, failed, cause);
    after = failed;
  }
  mark_dependents(q, reached);
  const uint64_t confirmed = std::max(q->confirmed.load(), reached);
  while (!q->log.empty() && q->log.front().value <= confirmed) q->log.pop_front();
  std::erase_if(q->held, [&](const std::pair<uint64_t, Storage*>& h) {
    if (h.first > reached) return false;
    unref_storage(h.second);
    return true;
  });
  q->confirmed = confirmed;  // last: who reads it without the lock may close the queue
  return TN_OK;
}

}  // namespace

tn_status wait_queue(tn_queue* q, uint64_t value, uint64_t timeout_ns, tn_diag* diag) {
  if (q->inline_work || q->confirmed.load() >= value) return TN_OK;
  {
    std::lock_guard lock(q->lock);
    if (q->signalled < value)
      if (tn_status s = signal_queue(q, diag)) return s;
    value = q->signalled;
  }
  if (tn_status s = call_plugin(q->device->plugin->table->wait, nullptr, q->timeline, value, timeout_ns, diag)) return told(q, s, diag);
  std::lock_guard lock(q->lock);
  return collect(q, value, diag);
}

uint64_t find_failure(tn_queue* q, uint64_t after, uint64_t upto, bool* depends, tn_diag* diag) {
  std::lock_guard lock(q->lock);
  const FailedWork* first = nullptr;
  for (const FailedWork& f : q->failures)
    if (f.value > after && f.value <= upto && (!first || f.value < first->value)) first = &f;
  if (!first) return 0;
  if (depends) *depends = first->depends;
  if (diag) *diag = first->diag;
  return first->value;
}

namespace {

// Nobody waited for long: what the device has done meanwhile needs no record. Where the app is too far ahead of the device,
// it waits for the older half of the work. Failures of the timeline itself are told by whoever waits next.
void let_go_of_done(tn_queue* q) {
  tn_diag ignored{};
  uint64_t reached = 0, failed = 0;
  if (signal_queue(q, &ignored) != TN_OK) return;
  if (call_plugin(q->device->plugin->table->query, q->timeline, q->confirmed.load(), &reached, &failed, &ignored) != TN_OK) return;
  if (collect(q, std::min(reached, q->signalled.load()), &ignored) != TN_OK) return;
  if (q->log.size() >= kLogMost) {
    const uint64_t older = q->log[q->log.size() / 2].value;  // signalled above
    if (call_plugin(q->device->plugin->table->wait, nullptr, q->timeline, older, TN_FOREVER, &ignored) == TN_OK) collect(q, older, &ignored);
  }
  q->next_look = std::max(q->log.size(), q->held.size()) + kLogQuery;
}

}  // namespace

void hold_foreign(tn_queue* q, uint64_t value, const tn_tensor* const* used, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    if (!used[i] || is_type_only(used[i]) || used[i]->storage->home == q->pool.get()) continue;
    q->held.emplace_back(value, used[i]->storage);
    used[i]->storage->refs.fetch_add(1, std::memory_order_relaxed);
  }
}

void log_work(tn_queue* q, uint64_t value, const tn_tensor* const* in, uint32_t n_in) {
  WorkRecord w;
  w.value = value;
  w.note = q->note;
  for (uint32_t i = 0; i < n_in; ++i) {
    if (!in[i] || is_type_only(in[i])) continue;
    const Storage* s = in[i]->storage;
    w.inputs.push_back({s->ready_queue.load(std::memory_order_relaxed), 0, s->ready_value.load(std::memory_order_relaxed)});
  }
  q->log.push_back(std::move(w));
  hold_foreign(q, value, in, n_in);
  if (std::max(q->log.size(), q->held.size()) >= q->next_look) let_go_of_done(q);
}

tn_status order_after_point(tn_queue* q, const tn_point& point, tn_diag* diag) {
  if (point.queue == 0 || point.queue == q->id) return TN_OK;
  tn_queue* other = q->runtime->queue(point.queue);
  if (!other || other->inline_work) return TN_OK;  // gone queues finished their work
  if (other->confirmed.load() >= point.value) return TN_OK;
  if (other->signalled.load() < point.value)
    if (tn_status s = signal_queue(other, diag)) return s;
  if (other->device == q->device && !q->inline_work) {
    std::lock_guard lock(q->lock);
    return call_plugin(q->device->plugin->table->wait, q->dev_queue, other->timeline, point.value, TN_FOREVER, diag);
  }
  return wait_queue(other, point.value, TN_FOREVER, diag);  // no shared handle between plugins: the host waits
}

tn_status order_after(tn_queue* q, const Storage* s, tn_diag* diag) {
  const uint32_t queue = s->ready_queue.load(std::memory_order_relaxed);
  if (queue == q->id || queue == 0) return TN_OK;
  return order_after_point(q, {queue, 0, s->ready_value.load(std::memory_order_relaxed)}, diag);
}

}  // namespace tenon::kernel
