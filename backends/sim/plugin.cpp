// backends/sim/plugin.cpp - the exported symbol, lifecycle, devices and kernels of the simulated accelerator.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "backends/sim/device.h"
#include "ops/reference/cpu_info.h"
#include "ops/reference/diag.h"
#include "ops/reference/dtype.h"

#if defined(__aarch64__)
#define SIM_TARGET "aarch64-linux-gnu"
#else
#define SIM_TARGET "x86_64-linux-gnu"
#endif
TN_COLD({sizeof(tn_cold), 1, TN_ABI_CURRENT, TN_ABI_CURRENT, "dev.tenon.sim", "0.1.0", SIM_TARGET, {0, 0, 0, 0},
         TN_COLD_UNLOADABLE | TN_COLD_EMULATED, 0, {""}});

namespace tenon::sim {
using reference::fail;
namespace {

// A whole number from the configuration, or the fallback when the key is not set.
tn_status config_number(const tn_host* host, const char* key, uint64_t fallback, uint64_t most, uint64_t* out, tn_diag* diag) {
  const char* text = host->config != nullptr ? host->config(host->ctx, key) : nullptr;
  *out = fallback;
  if (text == nullptr) return TN_OK;
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != 0 || errno != 0 || value > most)
    return fail(diag, TN_E_ARG, reference::kErrConfig, "open: bad value of %s\nwhy: \"%s\" is not a whole number in 0..%llu\ntry: leave it out for %llu",
                key, text, static_cast<unsigned long long>(most), static_cast<unsigned long long>(fallback));
  *out = value;
  return TN_OK;
}

tn_status launch(const tn_kernel_plan* head, const tn_launch* call) {
  const reference::Plan* plan = reference::plan_of(head);
  const tn_dev_queue* queue = call->queue;
  if (queue != nullptr)
    if (tn_status s = alive(queue->owner, queue->device, call->diag); s != TN_OK) return s;
  if (call->n_views < head->n_views || call->push_bytes < head->push_bytes)
    return fail(call->diag, TN_E_ARG, reference::kErrViewCount, "launch: operands missing\nwhy: %u views and %u push bytes given, %u and %u needed\ntry: pass what the plan states",
                call->n_views, call->push_bytes, head->n_views, head->push_bytes);
  try {
    Work w;
    w.kind = Work::Launch, w.plan = head;
    for (uint32_t k = 0; k < head->n_views; ++k) {
      char what[32];
      std::snprintf(what, sizeof what, "launch: operand %u", k);
      if (tn_status s = locate(call->queue->owner, call->views[k], plan->low[k], plan->high[k], what, &w.data[k], call->diag); s != TN_OK) return s;
    }
    w.push.resize((call->push_bytes + 7) / 8);
    if (call->push_bytes != 0) std::memcpy(w.push.data(), call->push, call->push_bytes);
    enqueue(call->queue, std::move(w));
    return TN_OK;
  } catch (const std::bad_alloc&) {
    return fail(call->diag, TN_E_OOM, reference::kErrOutOfMemory, "launch: no memory\nwhy: the host heap is exhausted\ntry: wait for earlier work");
  }
}

tn_status prepare(tn_instance* self, const tn_device_ref* ref, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  if (ref != nullptr && ref->device != nullptr)
    if (tn_status s = alive(self, ref->device->index, diag); s != TN_OK) return s;
  if constexpr (kPlant == Plant::DishonestSupports)
    if (op->op_id == TN_OPID_REDUCE && op->type[0].rank == 3)
      return fail(diag, TN_E_UNSUPPORTED, reference::kErrNoSuchSpace, "reduce: rank 3\nwhy: this copy of the plugin promises it and cannot do it\ntry: another rank");
  const tn_status s = reference::make_plan(*op, reference::KernelTable::row_of(op->op_id), self, self->host, launch, out, diag);
  if (s == TN_OK) self->live.fetch_add(1);
  return s;
}
void retire(tn_instance* self, const tn_device_ref*, const tn_kernel_plan* plan) {
  reference::drop_plan(plan);
  self->live.fetch_sub(1);
}

// Everything that is set by "sim.<name>".
struct Settings {
  uint64_t devices = 1, start_ms = 0, max_rank = TN_MAX_RANK, max_operand_bytes = 0;
};
tn_status configure(const tn_host* host, tn_instance* self, Settings* set, tn_diag* diag) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 60;
  const auto number = [&](const char* key, uint64_t fallback, uint64_t most, uint64_t* out) { return config_number(host, key, fallback, most, out, diag); };
  tn_status s = number("sim.devices", 1, kMostDevices, &set->devices);
  if (s == TN_OK) s = number("sim.memory_bytes", reference::memory_total_bytes() / 2, kMostBytes, &self->memory_bytes);
  if (s == TN_OK) s = number("sim.max_alloc_bytes", self->memory_bytes, kMostBytes, &self->max_alloc_bytes);
  if (s == TN_OK) s = number("sim.max_rank", TN_MAX_RANK, TN_MAX_RANK, &set->max_rank);
  if (s == TN_OK) s = number("sim.max_operand_bytes", 0, kMostBytes, &set->max_operand_bytes);
  if (s == TN_OK) s = number("sim.latency_ns", 0, 10000000000u, &self->latency_ns);
  if (s == TN_OK) s = number("sim.start_ms", 0, 60000, &set->start_ms);
  if (s == TN_OK) s = number("sim.lose_after", 0, UINT64_MAX - 1, &self->lose_after);
  if (s == TN_OK) s = number("sim.lose_device", 0, kMostDevices - 1, &self->lose_device);
  self->max_alloc_bytes = std::min(self->max_alloc_bytes, self->memory_bytes);
  return s;
}

tn_status open(const tn_host* host, tn_instance** out, tn_diag* diag) {
  auto* self = new (std::nothrow) tn_instance;
  if (self == nullptr) return fail(diag, TN_E_OOM, reference::kErrOutOfMemory, "open: no memory\nwhy: the heap is exhausted\ntry: free memory");
  self->host = host;
  Settings set;
  const tn_status s = configure(host, self, &set, diag);
  if (s != TN_OK) {
    delete self;
    return s;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(set.start_ms));
  self->n_devices = static_cast<uint32_t>(set.devices);
  self->kernels.init("sim", vendor_kind(), prepare, retire);
  if constexpr (kPlant == Plant::NarrowConstraints)  // says f32 in its data, and takes every type when asked
    for (tn_constraint& c : self->kernels.constraint[reference::KernelTable::row_of(TN_OPID_REDUCE)])
      if (c.kind == TN_NEED_DTYPE) c.mask = uint64_t{1} << TN_F32;
  self->limited.apply(&self->kernels, set.max_rank, set.max_operand_bytes);
  *out = self;
  return TN_OK;
}

tn_status quiesce(tn_instance* self, uint64_t timeout_ns, uint32_t* out_live, tn_diag*) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::min<uint64_t>(timeout_ns, 1000000000));
  while (self->live.load() != 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  *out_live = self->live.load();
  return TN_OK;
}
void close(tn_instance* self) {
  release_all(self);
  delete self;
}
const void* iface(tn_instance*, const char*) { return nullptr; }

tn_status devices(tn_instance* self, tn_device_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag*) {
  *out_n = self->n_devices;
  for (uint32_t i = 0; i < self->n_devices && i < cap; ++i) {
    tn_device_info info{};
    info.size = static_cast<uint32_t>(std::min<size_t>(stride, sizeof info));
    info.index = i;
    info.kind = vendor_kind(), info.flags = TN_DEVICE_EMULATED;
    info.mem_total_bytes = self->memory_bytes;
    {
      const std::lock_guard lock(self->memory_mutex);
      info.mem_free_bytes = self->memory_bytes - self->used_bytes[i];
    }
    info.dtype_storage = reference::kMoveMask;
    info.dtype_compute = reference::kIntMask | reference::bit(TN_BOOL) | reference::bit(TN_F32) | reference::bit(TN_F64);
    info.n_spaces = 1;
    std::snprintf(info.name, sizeof info.name, "Simulated accelerator %u", i);
    std::snprintf(info.driver, sizeof info.driver, "sim 0.1.0");
    std::memcpy(reinterpret_cast<char*>(out) + size_t{i} * stride, &info, info.size);
  }
  return TN_OK;
}

tn_status caps(tn_instance* self, uint32_t index, tn_cap*, uint32_t, uint32_t* out_n, tn_diag* diag) {
  *out_n = 0;  // nothing is known of hardware that is not there
  if (index < self->n_devices) return TN_OK;
  return fail(diag, TN_E_NOT_FOUND, reference::kErrNoSuchDevice, "caps: no device sim:%u\nwhy: there are %u\ntry: raise sim.devices", index, self->n_devices);
}

tn_status device_open(tn_instance* self, uint32_t index, const tn_ext* options, tn_device** out, tn_diag* diag) {
  if (index >= self->n_devices)
    return fail(diag, TN_E_NOT_FOUND, reference::kErrNoSuchDevice, "device_open: no device sim:%u\nwhy: there are %u\ntry: raise sim.devices", index, self->n_devices);
  if (tn_status s = alive(self, index, diag); s != TN_OK) return s;
  for (const tn_ext* e = options; e != nullptr; e = e->next)
    if ((e->id & TN_EXT_CRITICAL) != 0)
      return fail(diag, TN_E_EXT, reference::kErrConfig, "device_open: unknown critical option\nwhy: extension id %u is not known here\ntry: leave it out", e->id);
  *out = new (std::nothrow) tn_device{self, index};
  if (*out == nullptr) return fail(diag, TN_E_OOM, reference::kErrOutOfMemory, "device_open: no memory\nwhy: the heap is exhausted\ntry: free memory");
  self->live.fetch_add(1);
  return TN_OK;
}
void device_close(tn_device* device) {
  device->owner->live.fetch_sub(1);
  delete device;
}

tn_status kernels(tn_instance* self, const tn_kernel_info** out, uint32_t* out_stride, uint32_t* out_n, tn_diag*) {
  *out = self->kernels.row, *out_stride = sizeof(tn_kernel_info), *out_n = reference::KernelTable::kCount;
  return TN_OK;
}
tn_status ops(tn_instance*, const tn_op_def** out, uint32_t* out_stride, uint32_t* out_n, tn_diag*) {
  *out = nullptr, *out_stride = sizeof(tn_op_def), *out_n = 0;
  return TN_OK;
}

constexpr tn_plugin kTable = {
    sizeof(tn_plugin), TN_ABI_CURRENT, nullptr, open, quiesce, close, iface, devices, caps, device_open, device_close,
    spaces, alloc, free, nullptr, nullptr, copy, queue_open, queue_close,
    timeline_open, timeline_close, signal, wait, query, kernels, ops};

}  // namespace
}  // namespace tenon::sim

extern "C" TN_EXPORT const tn_plugin* tn_plugin_query(uint32_t abi, const tn_host*) {
  return abi == TN_ABI_CURRENT ? &tenon::sim::kTable : nullptr;
}
