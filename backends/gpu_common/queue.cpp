// backends/gpu_common/queue.cpp - queues: work goes to the driver from the calling thread; signals come back through fences.
//
// Behind a wait for a value that nobody has given to the device yet, later work is deferred: whoever brings the value runs it.
// A thread per queue waits for fences in order, so that timelines advance and deferred work runs though nobody asks.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "backends/gpu_common/state.h"

namespace tenon::gpu {
namespace {

constexpr std::chrono::milliseconds kLookUp{10};

// What the driver said of work, kept for the next signal; the first failure is the cause of the others.
void keep_failure(tn_dev_queue* q, const tn_diag& words) {
  if (!q->failed) q->failed = true, q->failure = words;
}

tn_status copy_piece(const tn_dev_queue* q, const tn_view& view, uint64_t bytes, const char* what, Stream::Piece* out, tn_diag* diag) {
  if (view.handle == 0) {
    out->host = view.host;
    if (view.host != nullptr) return TN_OK;
    return report(diag, TN_E_ARG, kErrView, "%s: host memory without an address\nwhy: handle and host are both 0\ntry: set host", what);
  }
  Block* block = nullptr;
  if (bytes > INT64_MAX) return report(diag, TN_E_ARG, kErrView, "%s: %llu bytes\nwhy: no buffer has so many\ntry: pass the size of the data", what, ull(bytes));
  if (tn_status s = locate(q->slot, view, 0, static_cast<int64_t>(bytes), what, 0, &block, diag); s != TN_OK) return s;
  out->handle = block->handle, out->offset = view.offset;
  return TN_OK;
}

tn_status run_copy(tn_dev_queue* q, const tn_view& dst, const tn_view& src, bool only_check, tn_diag* diag) {
  Stream::Piece to, from;
  if (dst.handle == 0 && src.handle == 0)
    return report(diag, TN_E_ARG, kErrView, "copy: both sides are host memory\nwhy: one side must be memory of %s:%u\ntry: use memcpy", q->slot->owner->name, q->slot->index);
  if (tn_status s = copy_piece(q, dst, dst.bytes, "copy: destination", &to, diag); s != TN_OK) return s;
  if (tn_status s = copy_piece(q, src, dst.bytes, "copy: source", &from, diag); s != TN_OK) return s;
  if (only_check) return TN_OK;
  tn_diag words{};
  const tn_status s = q->stream->copy(to, from, dst.bytes, &words);
  return q->slot->told(*q->opened->device, s, words, diag);
}

// Puts a fence behind the work so far and makes it known to all who wait for the value.
tn_status run_signal(tn_dev_queue* q, const std::shared_ptr<tn_dev_timeline>& t, uint64_t value, Aftermath* after, tn_diag* diag) {
  Pending p;
  p.timeline = t, p.value = value;
  tn_diag words{};
  tn_status s = readback(q, &words);
  if (s == TN_OK) s = q->stream->fence(&p.fence, &words);
  if (s != TN_OK) return q->slot->told(*q->opened->device, s, words, diag);
  p.words = std::move(q->words), q->words.clear();
  p.failed = q->failed, p.failure = q->failure;
  q->failed = false;
  {
    const std::lock_guard lock(t->mutex);
    const auto at = std::upper_bound(t->points.begin(), t->points.end(), value, [](uint64_t v, const tn_dev_timeline::Point& point) { return v < point.value; });
    t->points.insert(at, {value, p.fence, q->weak_from_this(), q->opened.get()});
    for (const auto& weak : t->waiting)
      if (auto waiting = weak.lock(); waiting != nullptr && waiting.get() != q) after->resume.push_back(std::move(waiting));
    t->changed.notify_all();
  }
  q->pending.push_back(std::move(p));
  q->more.notify_one();
  return TN_OK;
}

// A deferred signal that cannot be given to the device any more passes at once, bad: nobody may wait for ever.
void fail_signal(tn_dev_queue* q, const Deferred& d, const tn_diag& words) {
  Pending p;
  p.timeline = d.timeline, p.value = d.value;
  p.failed = true, p.failure = words;
  q->pending.push_back(std::move(p));
  q->more.notify_one();
}

void run_one(tn_dev_queue* q, const Deferred& d, Aftermath* after) {
  tn_diag words{};
  tn_status s = q->slot->alive(&words);
  if (s == TN_OK) {
    if (d.kind == Deferred::Launch) s = run_launch(q, *d.plan, d.views.data(), d.push.data(), &words);
    if (d.kind == Deferred::Copy) s = run_copy(q, d.views[0], d.views[1], false, &words);
    if (d.kind == Deferred::Signal) s = run_signal(q, d.timeline, d.value, after, &words);
  }
  if (s == TN_OK) return;
  keep_failure(q, words);
  if (d.kind == Deferred::Signal) fail_signal(q, d, q->failure), q->failed = false;
}

// The work before p has finished, well or not.
void finish(tn_dev_queue* q, Pending& p, tn_status status, const tn_diag& words, Aftermath* after) {
  q->slot->told(*q->opened->device, status, words, nullptr);
  if (status != TN_OK && status != TN_E_DEVICE_LOST && !p.failed) p.failed = true, p.failure = words;
  for (const FailureWord& w : p.words) {
    if (p.failed || status != TN_OK || w.word[0] == 0) continue;
    p.failed = true;
    describe_failure(*w.spec, w.word.get(), &p.failure);
  }
  if (p.failed) p.failure.status = TN_E_FAILED;
  advance(p.timeline.get(), p.value, p.failed ? &p.failure : nullptr, after);
}

void waiter_loop(tn_dev_queue* q) {
  std::unique_lock lock(q->mutex);
  for (;;) {
    if (q->pending.empty()) {
      if (q->closing) return;
      if (q->deferred.empty()) q->more.wait(lock);
      else q->more.wait_for(lock, kLookUp);
    }
    if (!q->deferred.empty() && q->pending.empty()) {  // a value may also have passed by a loss
      Aftermath after;
      run_deferred(q, &after);
      lock.unlock();
      after.run();
      lock.lock();
    }
    if (q->pending.empty()) continue;
    const std::shared_ptr<Fence> fence = q->pending.front().fence;
    lock.unlock();
    tn_diag ignored{};
    if (fence != nullptr) fence->wait(TN_FOREVER, &ignored);
    complete_ready(q);
    lock.lock();
  }
}

tn_status make_error_word(tn_dev_queue* q, tn_diag* diag) {
  if (q->has_error_word) return TN_OK;
  if (tn_status s = q->opened->device->alloc(16, 256, false, &q->error_word, diag); s != TN_OK) return s;
  q->has_error_word = true;
  return q->stream->fill_zero(q->error_word.handle, 0, 16, diag);
}

}  // namespace

void complete_ready(tn_dev_queue* q) {
  Aftermath after;
  {
    const std::lock_guard completing(q->completing);
    for (;;) {
      std::unique_lock lock(q->mutex);
      if (q->pending.empty()) break;
      const std::shared_ptr<Fence> fence = q->pending.front().fence;
      lock.unlock();
      tn_diag words{};
      const tn_status s = fence != nullptr ? fence->wait(0, &words) : tn_status{TN_OK};
      if (s == TN_E_TIMEOUT) break;
      lock.lock();
      Pending p = std::move(q->pending.front());
      q->pending.pop_front();
      lock.unlock();
      finish(q, p, s, words, &after);
    }
  }
  after.run();
}

void run_deferred(tn_dev_queue* q, Aftermath* after) {
  while (!q->deferred.empty()) {
    const Deferred& d = q->deferred.front();
    if (d.kind == Deferred::Wait && !q->closing) {
      bool blocked = false;
      tn_diag words{};
      if (wait_there(q, d.timeline.get(), d.value, &blocked, &words) != TN_OK) keep_failure(q, words);
      if (blocked) return;
    }
    if (d.kind != Deferred::Wait) run_one(q, d, after);
    q->deferred.pop_front();
  }
}

tn_status error_word(tn_dev_queue* q, const std::shared_ptr<const KernelSpec>& spec, Binding* out, tn_diag* diag) {
  if (tn_status s = make_error_word(q, diag); s != TN_OK) return s;
  if (q->may_fail != nullptr && q->may_fail != spec)
    if (tn_status s = readback(q, diag); s != TN_OK) return s;
  q->may_fail = spec;
  *out = {q->error_word.handle, 0, 16};
  return TN_OK;
}

tn_status readback(tn_dev_queue* q, tn_diag* diag) {
  if (q->may_fail == nullptr) return TN_OK;
  FailureWord w{std::make_unique<uint32_t[]>(4), q->may_fail};
  Stream::Piece to, from;
  to.host = w.word.get(), from.handle = q->error_word.handle;
  if (tn_status s = q->stream->copy(to, from, 16, diag); s != TN_OK) return s;
  q->words.push_back(std::move(w));  // from here on the word must live until the fence has passed
  if (tn_status s = q->stream->fill_zero(q->error_word.handle, 0, 16, diag); s != TN_OK) return s;
  q->may_fail = nullptr;
  return TN_OK;
}

tn_status copy(tn_dev_queue* q, const tn_view* dst, const tn_view* src, tn_diag* diag) {
  return guarded(diag, [&] {
    if (tn_status s = q->slot->alive(diag); s != TN_OK) return s;
    if (dst->bytes == 0) return tn_status{TN_OK};
    const std::lock_guard lock(q->mutex);
    if (q->deferred.empty()) return run_copy(q, *dst, *src, false, diag);
    if (tn_status s = run_copy(q, *dst, *src, true, diag); s != TN_OK) return s;
    Deferred d;
    d.kind = Deferred::Copy, d.views = {*dst, *src};
    q->deferred.push_back(std::move(d));
    return tn_status{TN_OK};
  });
}

tn_status launch(const tn_kernel_plan* head, const tn_launch* call) {
  return guarded(call->diag, [&] {
    const Plan& plan = *plan_of(head);
    tn_dev_queue* q = call->queue;
    if (tn_status s = q->slot->alive(call->diag); s != TN_OK) return s;
    const uint32_t need = head->n_views + (head->workspace_bytes != 0 ? 1 : 0);
    if (call->n_views < need || call->push_bytes < head->push_bytes)
      return report(call->diag, TN_E_ARG, kErrLaunch, "launch: operands missing\nwhy: %u views and %u push bytes given, %u and %u needed\ntry: pass what the plan states", call->n_views,
                    call->push_bytes, need, head->push_bytes);
    const std::lock_guard lock(q->mutex);
    if (q->deferred.empty()) return run_launch(q, plan, call->views, call->push, call->diag);
    if (tn_status s = check_launch(q, plan, call->views, call->diag); s != TN_OK) return s;
    Deferred d;
    d.kind = Deferred::Launch, d.plan = &plan;
    d.views.assign(call->views, call->views + need);
    d.push.resize((call->push_bytes + 7) / 8);
    if (call->push_bytes != 0) std::memcpy(d.push.data(), call->push, call->push_bytes);
    q->deferred.push_back(std::move(d));
    return tn_status{TN_OK};
  });
}

tn_status signal(tn_dev_queue* q, tn_dev_timeline* t, uint64_t value, tn_diag* diag) {
  Aftermath after;
  const tn_status status = guarded(diag, [&] {
    if (tn_status s = (q != nullptr ? q->slot : t->slot)->alive(diag); s != TN_OK) return s;
    {
      const std::lock_guard lock(t->mutex);
      if (value < t->asked)
        return report(diag, TN_E_ARG, kErrTimeline, "signal: a timeline only grows\nwhy: it stands at %llu, %llu was asked for, now %llu\ntry: signal a larger value", ull(t->value), ull(t->asked),
                      ull(value));
      t->asked = value;
    }
    if (q == nullptr) return advance(t, value, nullptr, &after), tn_status{TN_OK};
    const std::lock_guard lock(q->mutex);
    if (q->deferred.empty()) return run_signal(q, t->shared_from_this(), value, &after, diag);
    Deferred d;
    d.kind = Deferred::Signal, d.timeline = t->shared_from_this(), d.value = value;
    q->deferred.push_back(std::move(d));
    return tn_status{TN_OK};
  });
  guarded(nullptr, [&] { return after.run(), tn_status{TN_OK}; });
  return status;
}

tn_status queue_open(tn_device* device, uint32_t, int32_t priority, tn_dev_queue** out, tn_diag* diag) {
  return guarded(diag, [&] {
    Slot* slot = device->slot;
    if (tn_status s = slot->alive(diag); s != TN_OK) return s;
    auto q = std::make_shared<tn_dev_queue>();
    q->slot = slot, q->opened = device->opened;
    tn_diag words{};
    if (tn_status s = q->opened->device->open_stream(priority, &q->stream, &words); s != TN_OK)
      return slot->told(*q->opened->device, s, words, diag);
    q->waiter = std::thread(waiter_loop, q.get());
    q->self = q;
    slot->owner->live.fetch_add(1);
    *out = q.get();
    return tn_status{TN_OK};
  });
}

void queue_close(tn_dev_queue* q) {
  const std::shared_ptr<tn_dev_queue> keep = std::move(q->self);
  Aftermath after;
  {
    const std::lock_guard lock(q->mutex);
    q->closing = true;
    run_deferred(q, &after);  // values that nobody will bring are not waited for
    q->more.notify_one();
  }
  after.run();
  q->waiter.join();
  q->stream.reset();  // after its work
  q->words.clear();
  if (q->has_error_word) q->opened->device->free(q->error_word.handle);
  q->slot->owner->live.fetch_sub(1);
}

}  // namespace tenon::gpu
