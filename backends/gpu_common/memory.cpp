// backends/gpu_common/memory.cpp - spaces, buffers and their bounds.
#include <algorithm>
#include <cstring>

#include "backends/gpu_common/state.h"

namespace tenon::gpu {
namespace {

constexpr uint64_t kAlign = 256;

bool has_pinned(const Slot& slot) { return slot.facts.info.n_spaces >= 2; }

}  // namespace

tn_status spaces(tn_device* device, tn_space_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  const Slot& slot = *device->slot;
  if (tn_status s = slot.alive(diag); s != TN_OK) return s;
  *out_n = has_pinned(slot) ? 2 : 1;
  for (uint32_t i = 0; i < std::min(cap, *out_n); ++i) {
    tn_space_info info{};
    info.size = static_cast<uint32_t>(std::min<size_t>(stride, sizeof info));
    info.id = i;
    info.kind = i == 0 ? TN_SPACE_DEVICE : TN_SPACE_PINNED;
    info.flags = i == 0 ? 0 : TN_SPACE_HOST_VISIBLE | TN_SPACE_COHERENT;
    info.align_bytes = kAlign;
    info.budget_bytes = slot.facts.info.mem_total_bytes;  // pinned memory: nobody says how much; as much as the device has is enough
    info.max_alloc_bytes = slot.facts.max_alloc_bytes != 0 ? slot.facts.max_alloc_bytes : slot.facts.info.mem_total_bytes;
    std::memcpy(reinterpret_cast<char*>(out) + size_t{i} * stride, &info, info.size);
  }
  return TN_OK;
}

tn_status alloc(tn_device* device, uint32_t space, uint64_t bytes, uint64_t align, tn_buffer* out, tn_diag* diag) {
  return guarded(diag, [&] {
    Slot* slot = device->slot;
    const char* name = slot->owner->name;
    if (tn_status s = slot->alive(diag); s != TN_OK) return s;
    if (space >= (has_pinned(*slot) ? 2u : 1u))
      return report(diag, TN_E_ARG, kErrSpace, "alloc: no memory space %u\nwhy: %s:%u has %u\ntry: use space 0", space, name, slot->index, has_pinned(*slot) ? 2 : 1);
    if ((align & (align - 1)) != 0) return report(diag, TN_E_ARG, kErrSpace, "alloc: alignment %llu\nwhy: it is not a power of two\ntry: use 256", ull(align));
    const uint64_t most = slot->facts.max_alloc_bytes;
    // Not TN_E_OOM: nothing that is freed makes room for it.
    if (most != 0 && bytes > most)
      return report(diag, TN_E_LIMIT, kErrTooLarge, "alloc: a buffer of %s:%u is too large\nwhy: %llu bytes asked, the driver allows %llu in one piece\ntry: use a smaller batch", name, slot->index,
                    ull(bytes), ull(most));
    if (bytes > UINT64_MAX / 2) return report(diag, TN_E_OOM, kErrOutOfMemory, "alloc: out of memory on %s:%u\nwhy: %llu bytes asked\ntry: use a smaller batch", name, slot->index, ull(bytes));
    Memory memory;
    auto block = std::make_unique<Block>(Block{slot, device->opened, 0, 0, nullptr});
    const uint64_t whole = (std::max<uint64_t>(bytes, 1) + 15) / 16 * 16;  // whole words for fills and vectors at the end
    tn_diag words{};
    if (tn_status s = device->opened->device->alloc(whole, std::max<uint64_t>(align, kAlign), space == 1, &memory, &words); s != TN_OK)
      return slot->told(*device->opened->device, s, words, diag);
    block->handle = memory.handle, block->bytes = whole, block->host = static_cast<char*>(memory.host);
    *out = {static_cast<uint64_t>(reinterpret_cast<uintptr_t>(block.release())), memory.dev_addr, bytes, memory.host, space, 0};
    slot->owner->live.fetch_add(1);
    return tn_status{TN_OK};
  });
}

void free(tn_device* device, const tn_buffer* buffer) {
  const std::unique_ptr<Block> block(block_of(buffer->handle));
  if (block == nullptr) return;
  block->opened->device->free(block->handle);
  device->slot->owner->live.fetch_sub(1);
}

tn_status locate(const Slot* slot, const tn_view& view, int64_t low, int64_t high, const char* what, uint32_t number, Block** out, tn_diag* diag) {
  Block* block = block_of(view.handle);
  if (block == nullptr || block->slot != slot)
    return report(diag, TN_E_ARG, kErrView, "%s %u: not memory of %s:%u\nwhy: %s\ntry: copy the data to the device first", what, number, slot->owner->name, slot->index,
                  block == nullptr ? "handle 0 is host memory" : "the buffer is another device's");
  const uint64_t before = low < 0 ? uint64_t{0} - static_cast<uint64_t>(low) : 0, after = high > 0 ? static_cast<uint64_t>(high) : 0;
  if (view.offset > block->bytes || before > view.offset || after > block->bytes - view.offset)
    return report(diag, TN_E_ARG, kErrView, "%s %u: outside its buffer\nwhy: offset %llu, bytes %lld..%lld around it, but the buffer has %llu\ntry: make the view inside the buffer", what, number,
                  ull(view.offset), static_cast<long long>(low), static_cast<long long>(high), ull(block->bytes));
  *out = block;
  return TN_OK;
}

}  // namespace tenon::gpu
