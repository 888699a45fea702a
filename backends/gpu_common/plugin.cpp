// backends/gpu_common/plugin.cpp - the table: lifecycle, devices, capabilities, native handles.
#include "backends/gpu_common/plugin.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "backends/gpu_common/state.h"

namespace tenon::gpu {
namespace {

// What the kernels may know of a device. Some drivers say it only of an opened one.
tn_status learn_caps(Slot* slot, tn_diag* diag) {
  Caps caps = slot->facts.gpu;
  if (caps.storage == 0) {
    std::shared_ptr<Opened> opened;
    if (tn_status s = slot->open(&opened, diag); s != TN_OK) return s;
    caps = opened->device->caps();
  }
  slot->caps = lowered(std::move(caps), slot->owner->settings.limits);
  return TN_OK;
}

tn_status add_devices(tn_instance* self, tn_diag* diag) {
  for (DeviceFacts& facts : self->driver->enumerate()) {
    auto slot = std::make_unique<Slot>();
    slot->owner = self;
    slot->index = static_cast<uint32_t>(self->slots.size());
    slot->facts = std::move(facts);
    if (slot->facts.emulated) slot->facts.info.flags |= TN_DEVICE_EMULATED;
    tn_diag words{};
    if (learn_caps(slot.get(), &words) != TN_OK) slot->lose(&words);  // stays listed, answers with the driver's words
    self->slots.push_back(std::move(slot));
  }
  if (self->slots.empty())
    return report(diag, TN_E_UNAVAILABLE, kErrNoSuchDevice, "%s has no device\nwhy: the driver's library is there and lists none\ntry: install a driver for the hardware", self->name);
  sort_into_classes(&self->slots);
  self->rows.fill(self->slots, self->name);
  return TN_OK;
}

tn_status native_device(tn_instance*, tn_device* device, uint64_t* out, tn_diag* diag) {
  if (tn_status s = device->slot->alive(diag); s != TN_OK) return s;
  *out = device->opened->device->native();
  return TN_OK;
}
tn_status native_stream(tn_instance* self, tn_dev_queue* q, uint64_t* out, tn_diag* diag) {
  if (tn_status s = q->slot->alive(diag); s != TN_OK) return s;
  const std::lock_guard lock(q->mutex);
  if (!q->deferred.empty()) {
    report(diag, TN_E_BUSY, kErrBusy, "stream: the queue of %s:%u waits for a value\nwhy: %zu commands stand before what would be put on the stream\ntry: ask again when the value is reached", self->name,
           q->slot->index, q->deferred.size());
    if (diag != nullptr) diag->flags |= TN_DIAG_RETRY;
    return TN_E_BUSY;
  }
  *out = q->stream->native();
  return TN_OK;
}
tn_status native_memory(tn_instance*, const tn_view* view, uint64_t* out_handle, uint64_t* out_offset, tn_diag* diag) {
  const Block* block = block_of(view->handle);
  if (block == nullptr) return report(diag, TN_E_ARG, kErrView, "memory: no buffer\nwhy: handle 0 is host memory\ntry: pass a view of device memory");
  if (tn_status s = block->slot->alive(diag); s != TN_OK) return s;
  *out_handle = block->opened->device->native_memory(block->handle);
  *out_offset = view->offset;
  return TN_OK;
}

tn_status open(const tn_host* host, tn_instance** out, tn_diag* diag) {
  return guarded(diag, [&] {
    auto self = std::make_unique<tn_instance>();
    self->host = host;
    self->name = driver_name();
    if (tn_status s = read_settings(host, self->name, &self->settings, diag); s != TN_OK) return s;
    self->store = std::make_unique<KernelStore>(self->settings.cache_folder, self->settings.cache_bytes);
    if (tn_status s = make_driver(host, &self->driver, diag); s != TN_OK) return s;
    if (tn_status s = add_devices(self.get(), diag); s != TN_OK) return s;
    self->native = {sizeof(tn_native), self->driver->native_kind(), native_device, native_stream, native_memory};
    *out = self.release();
    return tn_status{TN_OK};
  });
}

tn_status quiesce(tn_instance* self, uint64_t timeout_ns, uint32_t* out_live, tn_diag*) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::min<uint64_t>(timeout_ns, 1000000000));
  while (self->live.load() != 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  *out_live = self->live.load();
  return TN_OK;
}
void close(tn_instance* self) {
  self->slots.clear();
  delete self;
}

tn_status no_device(const tn_instance* self, const char* what, uint32_t index, tn_diag* diag) {
  return report(diag, TN_E_NOT_FOUND, kErrNoSuchDevice, "%s: no device %s:%u\nwhy: the driver lists %zu\ntry: take an index below that", what, self->name, index, self->slots.size());
}

tn_status devices(tn_instance* self, tn_device_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag*) {
  *out_n = static_cast<uint32_t>(self->slots.size());
  for (uint32_t i = 0; i < std::min(cap, *out_n); ++i) {
    Slot& slot = *self->slots[i];
    tn_device_info info = slot.facts.info;
    info.size = static_cast<uint32_t>(std::min<size_t>(stride, sizeof info));
    info.next = nullptr, info.index = i;
    info.n_spaces = std::clamp(info.n_spaces, 1u, 2u);
    std::shared_ptr<Opened> opened;
    {
      const std::lock_guard lock(slot.mutex);
      opened = slot.opened.lock();
    }
    if (opened != nullptr)
      if (const uint64_t now = opened->device->free_bytes(); now != 0) info.mem_free_bytes = now;
    info.mem_free_bytes = std::min(info.mem_free_bytes, info.mem_total_bytes);
    std::memcpy(reinterpret_cast<char*>(out) + size_t{i} * stride, &info, info.size);
  }
  return TN_OK;
}

tn_status caps(tn_instance* self, uint32_t index, tn_cap* out, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  *out_n = 0;
  if (index >= self->slots.size()) return no_device(self, "caps", index, diag);
  const std::vector<tn_cap>& all = self->slots[index]->facts.caps;
  *out_n = static_cast<uint32_t>(all.size());
  std::copy_n(all.begin(), std::min<size_t>(cap, all.size()), out);
  return TN_OK;
}

tn_status device_open(tn_instance* self, uint32_t index, const tn_ext* options, tn_device** out, tn_diag* diag) {
  return guarded(diag, [&] {
    if (index >= self->slots.size()) return no_device(self, "device_open", index, diag);
    for (const tn_ext* e = options; e != nullptr; e = e->next)
      if ((e->id & TN_EXT_CRITICAL) != 0)
        return report(diag, TN_E_EXT, kErrOption, "device_open: unknown critical option\nwhy: extension id %u is not known here\ntry: leave it out", e->id);
    Slot* slot = self->slots[index].get();
    if (tn_status s = slot->alive(diag); s != TN_OK) return s;
    auto device = std::make_unique<tn_device>(tn_device{slot, nullptr});
    if (tn_status s = slot->open(&device->opened, diag); s != TN_OK) return s;
    self->live.fetch_add(1);
    *out = device.release();
    return tn_status{TN_OK};
  });
}
void device_close(tn_device* device) {
  tn_instance* self = device->slot->owner;
  delete device;
  self->live.fetch_sub(1);
}

tn_status kernels(tn_instance* self, const tn_kernel_info** out, uint32_t* out_stride, uint32_t* out_n, tn_diag*) {
  *out = self->rows.rows.data(), *out_stride = sizeof(tn_kernel_info), *out_n = static_cast<uint32_t>(self->rows.rows.size());
  return TN_OK;
}
tn_status ops(tn_instance*, const tn_op_def** out, uint32_t* out_stride, uint32_t* out_n, tn_diag*) {
  *out = nullptr, *out_stride = sizeof(tn_op_def), *out_n = 0;
  return TN_OK;
}

const void* iface(tn_instance* self, const char* name) {
  if (std::strcmp(name, "tn.native.v1") != 0) return nullptr;
  return &self->native;
}

constexpr tn_plugin kTable = {sizeof(tn_plugin), TN_ABI_CURRENT, nullptr, open, quiesce, close, iface, devices, caps, device_open, device_close,
                              spaces, alloc, free, nullptr, nullptr, copy, queue_open, queue_close,
                              timeline_open, timeline_close, signal, wait, query, kernels, ops};

}  // namespace

const tn_plugin* plugin_table(uint32_t abi) { return abi == TN_ABI_CURRENT ? &kTable : nullptr; }

}  // namespace tenon::gpu
