// loader/isolate/proxy_queue.cpp - queues, copies and timelines of an isolated plugin.
//
// A copy between the program's memory and the device goes through a shared block. What is written is taken before copy()
// returns; what is read lies in the block when the queue has passed the copy, and is moved on before anybody is told that
// it has: a copy is attached to the next signal of its queue, and whoever learns of a timeline's value settles first.
#include <algorithm>
#include <cerrno>

#include "kernel/status.h"
#include "loader/isolate/proxy.h"

namespace tenon::loader::isolate {
namespace {

using kernel::fail;

tn_status no_host_pointer(const char* side, tn_diag* diag) {
  return fail(diag, TN_E_ARG, kernel::id(kernel::kAbi, 7), "copy: %s without an address\nwhy: handle and host are both 0\ntry: set host", side);
}

// Moves on what timeline `t` has passed.
void settle_line(Instance* in, TimelineProxy* t, uint64_t value) {
  std::erase_if(t->attached, [&](const TimelineProxy::Attached& a) {
    if (a.copy.value > value) return false;
    if (a.copy.to != nullptr) std::memcpy(a.copy.to, a.copy.block.host, a.copy.block.bytes);
    in->heap.free(a.copy.block.host);
    in->n_attached.fetch_sub(1);
    return true;
  });
}

tn_status ask(TimelineProxy* t, uint64_t after, uint64_t* value, uint64_t* failed, tn_diag* diag) {
  Writer w;
  w.put(t->remote), w.put(after);
  std::string reply;
  if (tn_status s = t->owner->call(Call::Query, w, &reply, diag)) return s;
  Reader r(reply);
  *value = r.get<uint64_t>(), *failed = r.get<uint64_t>();
  return TN_OK;
}

// After one timeline has moved, others may have: a queue may have waited for them.
void settle(Instance* in) {
  if (in->n_attached.load() == 0) return;
  std::lock_guard lock(in->copies_mutex);
  std::erase_if(in->awaited, [&](TimelineProxy* t) {
    uint64_t value = 0, failed = 0;
    if (ask(t, 0, &value, &failed, nullptr) == TN_OK) settle_line(in, t, value);
    return t->attached.empty();
  });
}

void attach(QueueProxy* q, TimelineProxy* t, uint64_t value) {
  if (q->fresh.empty()) return;
  Instance* in = q->owner;
  std::lock_guard lock(in->copies_mutex);
  for (PendingCopy& c : q->fresh) {
    c.value = value;
    t->attached.push_back({c, q});
  }
  in->n_attached.fetch_add(static_cast<uint32_t>(q->fresh.size()));
  q->fresh.clear();
  if (std::find(in->awaited.begin(), in->awaited.end(), t) == in->awaited.end()) in->awaited.push_back(t);
}

// The shared block behind the side of a copy that is the program's memory.
tn_status stage(QueueProxy* q, const tn_view& side, uint64_t bytes, bool source, tn_view* remote, std::optional<PendingCopy>* out, tn_diag* diag) {
  *remote = side;
  remote->bytes = bytes;
  remote->host = nullptr;
  if (side.handle != 0) return TN_OK;
  if (side.host == nullptr) return no_host_pointer(source ? "a source" : "a destination", diag);
  PendingCopy c;
  if (tn_status s = q->owner->heap.allocate(bytes, 64, &c.block, diag)) return s;
  c.block.bytes = bytes;
  if (source) std::memcpy(c.block.host, side.host, bytes);
  else c.to = side.host;
  remote->host = reinterpret_cast<void*>(c.block.remote);
  remote->offset = 0;
  *out = c;
  return TN_OK;
}

tn_status copy_inline(const tn_view* dst, const tn_view* src, tn_diag* diag) {
  if (dst->host == nullptr || src->host == nullptr) return no_host_pointer(dst->host == nullptr ? "a destination" : "a source", diag);
  std::memmove(dst->host, src->host, dst->bytes);
  return TN_OK;
}

void free_all(Instance* in, std::vector<PendingCopy>* copies) {
  for (const PendingCopy& c : *copies) in->heap.free(c.block.host);
  copies->clear();
}

}  // namespace

tn_status copy(tn_dev_queue* queue, const tn_view* dst, const tn_view* src, tn_diag* diag) {
  QueueProxy* q = of(queue);
  Instance* in = q->owner;
  if (dst->bytes == 0) return TN_OK;
  if (tn_status s = in->worker->usable(Call::Copy, diag)) return s;
  if (q->device->inline_work) return copy_inline(dst, src, diag);
  tn_view to{}, from{};
  std::optional<PendingCopy> written, read;
  tn_status s = stage(q, *dst, dst->bytes, false, &to, &read, diag);
  if (s == TN_OK) s = stage(q, *src, dst->bytes, true, &from, &written, diag);
  Writer w;
  w.put(q->remote), w.put(to), w.put(from);
  std::string reply;
  if (s == TN_OK) s = in->call(Call::Copy, w, &reply, diag, q->lane.get());
  for (auto* c : {&read, &written}) {
    if (!c->has_value()) continue;
    if (s == TN_OK) q->fresh.push_back(**c);
    else in->heap.free((*c)->block.host);
  }
  return s;
}

tn_status queue_open(tn_device* device, uint32_t flags, int32_t priority, tn_dev_queue** out, tn_diag* diag) {
  DeviceProxy* d = of(device);
  if (tn_status s = d->owner->worker->usable(Call::QueueOpen, diag)) return s;
  auto lane = d->owner->worker->open_lane(diag);
  if (lane == nullptr) return TN_E_LIMIT;
  Writer w;
  w.put(d->remote), w.put(flags), w.put(priority);
  std::string reply;
  if (tn_status s = d->owner->call(Call::QueueOpen, w, &reply, diag, lane.get())) return s;
  *out = reinterpret_cast<tn_dev_queue*>(new QueueProxy{d->owner, d, Reader(reply).get<uint64_t>(), std::move(lane), {}, {}});
  return TN_OK;
}

// The plugin ends the queue's work before it answers: then nothing uses the shared blocks any more.
void queue_close(tn_dev_queue* queue) {
  QueueProxy* q = of(queue);
  Instance* in = q->owner;
  if (in->worker->forked()) return;
  Writer w;
  w.put(q->remote);
  std::string reply;
  in->call(Call::QueueClose, w, &reply, nullptr, q->lane.get());
  settle(in);
  free_all(in, &q->fresh);
  {
    std::lock_guard lock(in->copies_mutex);
    free_all(in, &q->forgotten);
    for (TimelineProxy* t : in->awaited) {
      in->n_attached.fetch_sub(static_cast<uint32_t>(std::erase_if(t->attached, [&](const TimelineProxy::Attached& a) {
        if (a.queue != q) return false;
        in->heap.free(a.copy.block.host);
        return true;
      })));
    }
  }
  delete q;
}

tn_status timeline_open(tn_device* device, uint64_t initial, tn_dev_timeline** out, tn_diag* diag) {
  DeviceProxy* d = of(device);
  Writer w;
  w.put(d->remote), w.put(initial);
  std::string reply;
  if (tn_status s = d->owner->call(Call::TimelineOpen, w, &reply, diag)) return s;
  *out = reinterpret_cast<tn_dev_timeline*>(new TimelineProxy{d->owner, Reader(reply).get<uint64_t>(), {}});
  return TN_OK;
}

void timeline_close(tn_dev_timeline* timeline) {
  TimelineProxy* t = of(timeline);
  Instance* in = t->owner;
  if (in->worker->forked()) return;
  settle(in);
  {
    std::lock_guard lock(in->copies_mutex);
    for (const TimelineProxy::Attached& a : t->attached) a.queue->forgotten.push_back(a.copy);
    in->n_attached.fetch_sub(static_cast<uint32_t>(t->attached.size()));
    std::erase(in->awaited, t);
  }
  Writer w;
  w.put(t->remote);
  std::string reply;
  in->call(Call::TimelineClose, w, &reply, nullptr);
  delete t;
}

// Attached first: the value may be reached, and asked for by another thread, before this call returns.
tn_status signal(tn_dev_queue* queue, tn_dev_timeline* timeline, uint64_t value, tn_diag* diag) {
  QueueProxy* q = of(queue);
  TimelineProxy* t = of(timeline);
  if (tn_status s = t->owner->worker->usable(Call::Signal, diag)) return s;
  if (q != nullptr) attach(q, t, value);
  Writer w;
  w.put(q != nullptr ? q->remote : uint64_t{0}), w.put(t->remote), w.put(value);
  std::string reply;
  return t->owner->call(Call::Signal, w, &reply, diag, q != nullptr ? q->lane.get() : nullptr);
}

tn_status wait(tn_dev_queue* queue, tn_dev_timeline* timeline, uint64_t value, uint64_t timeout_ns, tn_diag* diag) {
  QueueProxy* q = of(queue);
  TimelineProxy* t = of(timeline);
  if (q != nullptr && q->device->inline_work) q = nullptr, timeout_ns = TN_FOREVER;  // such a queue waits on its caller
  Writer w;
  w.put(q != nullptr ? q->remote : uint64_t{0}), w.put(t->remote), w.put(value), w.put(timeout_ns);
  std::string reply;
  const tn_status s = t->owner->call(Call::Wait, w, &reply, diag, q != nullptr ? q->lane.get() : nullptr);
  if (s == TN_OK && q == nullptr) settle(t->owner);
  return s;
}

tn_status query(tn_dev_timeline* timeline, uint64_t after, uint64_t* out_value, uint64_t* out_failed, tn_diag* diag) {
  uint64_t value = 0, failed = 0;
  if (tn_status s = ask(of(timeline), after, &value, &failed, diag)) return s;
  settle(of(timeline)->owner);
  if (out_value != nullptr) *out_value = value;
  if (out_failed != nullptr) *out_failed = failed;
  return TN_OK;
}

}  // namespace tenon::loader::isolate
