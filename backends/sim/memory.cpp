// backends/sim/memory.cpp - simulated memory: handles are numbers, addresses never leave this plugin.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "backends/sim/device.h"
#include "ops/reference/diag.h"

namespace tenon::sim {
using reference::fail;
namespace {
unsigned long long ull(uint64_t x) { return x; }
}  // namespace

tn_status spaces(tn_device* device, tn_space_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  if (tn_status s = alive(device->owner, device->index, diag); s != TN_OK) return s;
  *out_n = 1;
  if (cap == 0) return TN_OK;
  tn_space_info info{};
  info.size = static_cast<uint32_t>(std::min<size_t>(stride, sizeof info));
  info.kind = TN_SPACE_DEVICE;
  info.align_bytes = 64;
  info.budget_bytes = device->owner->memory_bytes;
  info.max_alloc_bytes = device->owner->max_alloc_bytes;
  std::memcpy(out, &info, info.size);
  return TN_OK;
}

tn_status alloc(tn_device* device, uint32_t space, uint64_t bytes, uint64_t align, tn_buffer* out, tn_diag* diag) {
  tn_instance* self = device->owner;
  if (tn_status s = alive(self, device->index, diag); s != TN_OK) return s;
  if (space != 0) return fail(diag, TN_E_ARG, reference::kErrNoSuchSpace, "alloc: no memory space %u\nwhy: sim devices have space 0 only\ntry: use space 0", space);
  if ((align & (align - 1)) != 0)
    return fail(diag, TN_E_ARG, reference::kErrAlignment, "alloc: alignment %llu\nwhy: it is not a power of two\ntry: use 64", ull(align));
  // Not TN_E_OOM: nothing that is freed makes room for it.
  if (bytes > self->max_alloc_bytes && self->max_alloc_bytes < self->memory_bytes)
    return fail(diag, TN_E_LIMIT, reference::kErrTooLarge, "alloc: a buffer of sim:%u is too large\nwhy: %llu bytes asked, sim.max_alloc_bytes is %llu\ntry: use a smaller batch, or raise sim.max_alloc_bytes",
                device->index, ull(bytes), ull(self->max_alloc_bytes));
  const std::lock_guard lock(self->memory_mutex);
  const uint64_t used = self->used_bytes[device->index];
  void* p = nullptr;
  if (bytes > self->memory_bytes - used || posix_memalign(&p, std::max<uint64_t>(align, 64), std::max<uint64_t>(bytes, 64)) != 0)
    return fail(diag, TN_E_OOM, reference::kErrOutOfMemory,
                "alloc: out of memory on sim:%u\nwhy: %llu bytes asked, %llu of %llu in use\ntry: use a smaller batch, or raise sim.memory_bytes",
                device->index, ull(bytes), ull(used), ull(self->memory_bytes));
  self->used_bytes[device->index] += bytes;
  const uint64_t handle = self->next_handle++;
  self->blocks[handle] = {static_cast<char*>(p), bytes, device->index};
  self->live.fetch_add(1);
  *out = {handle, 0, bytes, nullptr, space, 0};
  return TN_OK;
}

void free(tn_device* device, const tn_buffer* buffer) {
  tn_instance* self = device->owner;
  const std::lock_guard lock(self->memory_mutex);
  const auto it = self->blocks.find(buffer->handle);
  if (it == self->blocks.end()) return;
  self->used_bytes[it->second.device] -= it->second.bytes;
  if constexpr (kPlant != Plant::LeakedBuffer) std::free(it->second.data);
  self->blocks.erase(it);
  self->live.fetch_sub(1);
}

void release_all(tn_instance* self) {
  for (auto& [handle, block] : self->blocks) std::free(block.data);
  self->blocks.clear();
}

tn_status locate(tn_instance* self, const tn_view& view, int64_t low, int64_t high, const char* what, void** out, tn_diag* diag) {
  *out = nullptr;
  if (low >= high) return TN_OK;  // touches nothing
  const std::lock_guard lock(self->memory_mutex);
  const auto it = self->blocks.find(view.handle);
  if (it == self->blocks.end())
    return fail(diag, TN_E_ARG, reference::kErrOutsideBuffer, "%s: not a buffer of sim\nwhy: handle %llu is unknown here\ntry: copy the data to the device first", what, ull(view.handle));
  const uint64_t size = it->second.bytes, before = low < 0 ? uint64_t{0} - static_cast<uint64_t>(low) : 0;
  if (view.offset > size || before > view.offset || static_cast<uint64_t>(high) > size - view.offset)
    return fail(diag, TN_E_ARG, reference::kErrOutsideBuffer, "%s: outside its buffer\nwhy: offset %llu, bytes %lld..%lld around it, but the buffer has %llu\ntry: make the view inside the buffer",
                what, ull(view.offset), static_cast<long long>(low), static_cast<long long>(high), ull(size));
  *out = it->second.data + view.offset;
  return TN_OK;
}

}  // namespace tenon::sim
