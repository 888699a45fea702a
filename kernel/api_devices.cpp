// kernel/api_devices.cpp - runtime.h: devices, capabilities, queues, waiting, memory, threads, hooks.
#include <algorithm>
#include <cstring>
#include <string>

#include "kernel/find_device.h"
#include "kernel/fp_env.h"
#include "kernel/guard.h"
#include "kernel/runtime.h"
#include "kernel/status.h"

using namespace tenon::kernel;

namespace {

// Copies what the caller's struct has room for and keeps its size.
template <class T>
void give(T* out, const T& value, uint32_t stride) {
  const uint32_t room = std::min<uint32_t>(out->size ? out->size : stride, std::min<uint32_t>(stride, sizeof(T)));
  const uint32_t size = out->size ? out->size : room;
  std::memcpy(out, &value, room);
  out->size = size;
}

template <class T>
T* at(T* base, uint32_t stride, uint32_t i) { return reinterpret_cast<T*>(reinterpret_cast<char*>(base) + size_t{stride} * i); }

tn_status unknown_device(tn_diag* diag, uint32_t device) {
  return fail(diag, TN_E_NOT_FOUND, id(kDevice, 2), "no such device\nwhy: id %u is not in the device list\ntry: use ids from tn_devices", device);
}

}  // namespace

extern "C" {

tn_status tn_devices(tn_runtime* rt, tn_device_entry* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  return guarded(diag, [&] {
    const std::vector<tn_device_entry> all = rt->core.device_entries();
    *out_n = static_cast<uint32_t>(all.size());
    for (uint32_t i = 0; i < std::min<uint32_t>(cap, *out_n); ++i) give(at(out, stride, i), all[i], stride);
    return tn_status{TN_OK};
  });
}

tn_status tn_device_find(tn_runtime* rt, const char* spec, uint32_t policy, uint32_t* out_device, tn_diag* diag) {
  return guarded(diag, [&] { return find_device(rt->core, spec, policy, out_device, diag); });
}

tn_status tn_caps(tn_runtime* rt, uint32_t device, tn_cap* out, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  Device* d = rt->core.device(device);
  if (!d) return unknown_device(diag, device);
  if (tn_status s = d->open(diag)) return s;
  const size_t stated = d->caps.size();
  *out_n = static_cast<uint32_t>(stated + d->kept.caps.size());
  for (uint32_t i = 0; i < std::min(cap, *out_n); ++i) out[i] = i < stated ? d->caps[i] : d->kept.caps[i - stated];
  return TN_OK;
}

tn_status tn_spaces(tn_runtime* rt, uint32_t device, tn_space_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  return guarded(diag, [&] {
    Device* d = rt->core.device(device);
    if (!d) return unknown_device(diag, device);
    if (tn_status s = d->open(diag)) return s;
    if (!d->plugin->table->spaces) return *out_n = 0, tn_status{TN_OK};
    return call_plugin(d->plugin->table->spaces, d->handle, out, stride, cap, out_n, diag);
  });
}

tn_status tn_native_handle(tn_runtime* rt, uint32_t device, uint32_t what, tn_queue* queue, uint64_t* out, tn_diag* diag) {
  Device* d = rt->core.device(device);
  if (!d) return unknown_device(diag, device);
  if (tn_status s = d->open(diag)) return s;
  const tn_native* native = d->own_ref.native;
  if (what == 0 && native && native->device) return native->device(d->plugin->instance, d->handle, out, diag);
  if (what == 1 && native && native->stream && queue) return native->stream(d->plugin->instance, queue->dev_queue, out, diag);
  return fail(diag, TN_E_UNSUPPORTED, id(kDevice, 5), "%s offers no native handle of this kind\nwhy: its plugin has no tn.native.v1 entry for it\ntry: use the portable functions", d->name);
}

tn_status tn_queue_get(tn_runtime* rt, uint32_t device, tn_queue** out, tn_diag* diag) {
  return guarded(diag, [&] {
    Device* d = rt->core.device(device);
    return d ? rt->core.thread_queue(d, out, diag) : unknown_device(diag, device);
  });
}

tn_status tn_queue_create(tn_runtime* rt, uint32_t device, int32_t priority, tn_queue** out, tn_diag* diag) {
  return guarded(diag, [&] {
    Device* d = rt->core.device(device);
    return d ? rt->core.new_queue(d, priority, out, diag) : unknown_device(diag, device);
  });
}

tn_status tn_queue_destroy(tn_queue* q, tn_diag* diag) {
  if (!q) return TN_OK;
  if (q->thread_bound) return fail(diag, TN_E_STATE, id(kState, 10), "this queue is not yours to destroy\nwhy: tn_queue_get lends a thread's own queue\ntry: destroy only queues of tn_queue_create");
  return guarded(diag, [&] { return q->runtime->drop_queue(q), tn_status{TN_OK}; });
}

void tn_queue_point(tn_queue* q, tn_point* out) { *out = tn_point{q->id, 0, q->submitted.load(std::memory_order_relaxed)}; }
void tn_queue_note(tn_queue* q, const char* where) { q->note = where; }

tn_status tn_queue_after(tn_queue* q, const tn_point* points, uint32_t n, tn_diag* diag) {
  for (uint32_t i = 0; i < n; ++i)
    if (tn_status s = order_after_point(q, points[i], diag)) return s;
  return TN_OK;
}

tn_status tn_wait(tn_runtime* rt, const tn_point* points, uint32_t n, uint64_t timeout_ns, tn_diag* diag) {
  for (uint32_t i = 0; i < n; ++i) {
    tn_queue* q = rt->core.queue(points[i].queue);
    if (!q) return fail(diag, TN_E_NOT_FOUND, id(kState, 11), "no such queue\nwhy: point %u names queue %u\ntry: use points of living queues", i, points[i].queue);
    if (tn_status s = wait_queue(q, points[i].value, timeout_ns, diag)) return s;
  }
  return TN_OK;
}

tn_status tn_query(tn_runtime* rt, uint32_t queue, uint64_t after, uint64_t* out_value, uint64_t* out_failed, tn_diag* diag) {
  tn_queue* q = rt->core.queue(queue);
  if (!q) return fail(diag, TN_E_NOT_FOUND, id(kState, 11), "no such queue\nwhy: its number is %u\ntry: use points of living queues", queue);
  *out_failed = 0;
  if (q->inline_work) {
    *out_value = q->submitted.load();
    return TN_OK;
  }
  uint64_t failed = 0;
  if (tn_status s = signal_queue(q, diag)) return s;
  if (tn_status s = call_plugin(q->device->plugin->table->query, q->timeline, after, out_value, &failed, diag)) return s;
  *out_failed = find_failure(q, after, UINT64_MAX, nullptr, diag);
  if (!*out_failed) *out_failed = failed;
  return TN_OK;
}

tn_status tn_memory_stats(tn_runtime* rt, uint32_t device, tn_memory_info* out, tn_diag* diag) {
  Device* d = rt->core.device(device);
  if (!d) return unknown_device(diag, device);
  if (tn_status s = d->open(diag)) return s;
  tn_memory_info info{};
  info.size = sizeof info;
  info.device = device;
  d->memory.stats(&info);
  give(out, info, sizeof info);
  return TN_OK;
}

tn_status tn_memory_limit(tn_runtime* rt, uint32_t device, uint64_t bytes, tn_diag* diag) {
  Device* d = rt->core.device(device);
  if (!d) return unknown_device(diag, device);
  if (tn_status s = d->open(diag)) return s;
  d->memory.set_limit(bytes);
  return TN_OK;
}

tn_status tn_memory_trim(tn_runtime* rt, uint32_t device, tn_diag* diag) {
  Device* d = rt->core.device(device);
  if (!d) return unknown_device(diag, device);
  tn_queue* q = nullptr;
  if (tn_status s = rt->core.thread_queue(d, &q, diag)) return s;
  rt->core.wait_device(d);
  q->pool->trim();
  d->memory.trim_others(q->pool.get());
  return TN_OK;
}

tn_status tn_set_hooks(tn_runtime* rt, const tn_hooks* hooks, tn_diag* diag) {
  if (hooks && hooks->size < 8) return fail(diag, TN_E_ARG, id(kArg, 220), "hooks have no size\nwhy: size is %u\ntry: set size to sizeof(tn_hooks)", hooks->size);
  rt->core.set_hooks(hooks);
  return TN_OK;
}

uint32_t tn_threads(tn_runtime* rt) { return rt->core.pool().size(); }
void tn_parallel(tn_runtime* rt, int64_t n, int64_t grain, tn_range_fn fn, void* arg) { rt->core.pool().parallel(n, grain, fn, arg); }

}  // extern "C"
