// backends/vulkan/memory.cpp - see memory.h.
#include "backends/vulkan/memory.h"

#include <algorithm>

#include "backends/vulkan/status.h"

namespace tenon::vulkan {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

unsigned long long ull(uint64_t n) { return n; }

}  // namespace

bool FreeRanges::take(uint64_t bytes, uint64_t align, uint64_t* offset) {
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const uint64_t lost = round_up(it->first, align) - it->first;
    if (it->second >= lost && it->second - lost >= bytes && (best == free_.end() || it->second < best->second)) best = it;
  }
  if (best == free_.end()) return false;
  const uint64_t start = best->first, end = start + best->second;
  *offset = round_up(start, align);
  free_.erase(best);
  if (*offset > start) free_.emplace(start, *offset - start);
  if (*offset + bytes < end) free_.emplace(*offset + bytes, end - *offset - bytes);
  return true;
}

void FreeRanges::give(uint64_t offset, uint64_t bytes) {
  auto at = free_.emplace(offset, bytes).first;
  if (const auto next = std::next(at); next != free_.end() && next->first == offset + bytes) {
    at->second += next->second;
    free_.erase(next);
  }
  if (at == free_.begin()) return;
  if (const auto before = std::prev(at); before->first + before->second == offset) {
    before->second += at->second;
    free_.erase(at);
  }
}

uint32_t choose_memory_type(const VkPhysicalDeviceMemoryProperties& memory, MemoryKind kind, uint32_t allowed_mask) {
  constexpr VkMemoryPropertyFlags kVisible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkMemoryPropertyFlags needed = kind == MemoryKind::Device ? static_cast<VkMemoryPropertyFlags>(VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) : kVisible;
  // AMD's types for debugging are device-coherent, slow, and only for who switches their feature on.
  constexpr VkMemoryPropertyFlags kNever = VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD;
  uint32_t best = VK_MAX_MEMORY_TYPES;
  int best_score = -1;
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
    if ((allowed_mask >> i & 1) == 0 || (flags & needed) != needed || (flags & kNever) != 0) continue;
    const int score = kind == MemoryKind::Device ? ((flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) == 0 ? 1 : 0)
                                                 : ((flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0 ? 2 : 0) + ((flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) == 0 ? 1 : 0);
    // Of equals the one in the larger heap: a card may show a small window of its memory as a heap of its own.
    const auto heap_bytes = [&](uint32_t type) { return memory.memoryHeaps[memory.memoryTypes[type].heapIndex].size; };
    if (score > best_score || (score == best_score && heap_bytes(i) > heap_bytes(best))) best = i, best_score = score;
  }
  return best;
}

Allocator::Allocator(const DeviceApi& fn, VkDevice device, const Physical& physical) : fn_(fn), device_(device), physical_(physical) {
  VkBuffer probe = VK_NULL_HANDLE;
  VkMemoryRequirements need{};
  need.memoryTypeBits = ~0u;
  // All buffers are made alike, so that the types which one of them may have hold for all.
  if (make_buffer(16, &probe, &need, nullptr) == TN_OK) fn_.vkDestroyBuffer(device_, probe, nullptr);
  for (const MemoryKind kind : {MemoryKind::Device, MemoryKind::Host}) {
    const int k = static_cast<int>(kind);
    type_[k] = choose_memory_type(physical_.memory, kind, need.memoryTypeBits);
    heap_bytes_[k] = type_[k] < VK_MAX_MEMORY_TYPES ? physical_.memory.memoryHeaps[physical_.memory.memoryTypes[type_[k]].heapIndex].size : 0;
    chunk_bytes_[k] = std::clamp(heap_bytes_[k] / 256 / kMiB * kMiB, 4 * kMiB, 128 * kMiB);
  }
}

Allocator::~Allocator() {
  while (!blocks_.empty()) free(blocks_.begin()->first);
  while (!chunks_.empty()) release(chunks_.back().get());
}

tn_status Allocator::make_buffer(uint64_t bytes, VkBuffer* out, VkMemoryRequirements* need, tn_diag* diag) {
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  if (tn_status s = translate(diag, fn_.vkCreateBuffer(device_, &info, nullptr, out), "vkCreateBuffer"); s != TN_OK) return s;
  fn_.vkGetBufferMemoryRequirements(device_, *out, need);
  return TN_OK;
}

tn_status Allocator::new_chunk(uint64_t bytes, MemoryKind kind, bool shared, Chunk** out, tn_diag* diag) {
  // Drivers may give more than the heap has and page, or be killed for it: what a device states is what it gives here.
  uint64_t& used = used_of(kind);
  const uint64_t heap = heap_bytes_[static_cast<int>(kind)];
  if (bytes > heap - std::min(used, heap))
    return fail(diag, TN_E_OOM, kErrOutOfMemory, VK_SUCCESS, "vulkan: out of %s memory\nwhy: %llu bytes asked, %llu of the heap's %llu are in use\ntry: smaller batches, or release tensors",
                kind == MemoryKind::Device ? "device" : "host-visible", ull(bytes), ull(used), ull(heap));
  auto chunk = std::make_unique<Chunk>();
  chunk->bytes = bytes, chunk->kind = kind, chunk->shared = shared, chunk->ranges = FreeRanges(bytes);
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  info.allocationSize = bytes;
  info.memoryTypeIndex = type_[static_cast<int>(kind)];
  const VkResult r = chunks_.size() >= physical_.limits.maxMemoryAllocationCount ? VK_ERROR_TOO_MANY_OBJECTS : fn_.vkAllocateMemory(device_, &info, nullptr, &chunk->memory);
  char room[32];
  if (r < 0 && r != VK_ERROR_DEVICE_LOST)
    return fail(diag, TN_E_OOM, kErrOutOfMemory, r, "vulkan: out of %s memory\nwhy: %llu bytes asked, %zu allocations live; the driver: %s\ntry: smaller batches, or release tensors",
                kind == MemoryKind::Device ? "device" : "host-visible", ull(bytes), chunks_.size(), result_name(r, room));
  if (r < 0) return translate(diag, r, "vkAllocateMemory");
  chunks_.push_back(std::move(chunk));
  used += bytes;
  *out = chunks_.back().get();
  if (kind == MemoryKind::Device) return TN_OK;
  void* mapped = nullptr;
  const tn_status s = translate(diag, fn_.vkMapMemory(device_, (*out)->memory, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory");
  if (s != TN_OK) release(*out);
  else (*out)->mapped = static_cast<char*>(mapped);
  return s;
}

uint64_t& Allocator::used_of(MemoryKind kind) { return used_bytes_[physical_.memory.memoryTypes[type_[static_cast<int>(kind)]].heapIndex]; }

void Allocator::release(Chunk* chunk) {
  used_of(chunk->kind) -= chunk->bytes;
  fn_.vkFreeMemory(device_, chunk->memory, nullptr);  // unmaps it too
  std::erase_if(chunks_, [chunk](const auto& c) { return c.get() == chunk; });
}

tn_status Allocator::place(Block* block, const VkMemoryRequirements& need, uint64_t align, MemoryKind kind, tn_diag* diag) {
  block->reserved_bytes = need.size;
  const bool shared = need.size <= chunk_bytes(kind) / 2;
  if (shared)
    for (const auto& chunk : chunks_)
      if (chunk->kind == kind && chunk->shared && chunk->ranges.take(need.size, align, &block->offset)) {
        block->chunk = chunk.get();
        return TN_OK;
      }
  if (tn_status s = new_chunk(shared ? chunk_bytes(kind) : need.size, kind, shared, &block->chunk, diag); s != TN_OK) return s;
  block->chunk->ranges.take(need.size, align, &block->offset);
  return TN_OK;
}

tn_status Allocator::alloc(uint64_t bytes, uint64_t align, MemoryKind kind, Block** out, tn_diag* diag) {
  const uint64_t heap = heap_bytes_[static_cast<int>(kind)];
  if (bytes > heap)
    return fail(diag, TN_E_OOM, kErrOutOfMemory, VK_SUCCESS, "vulkan: out of memory\nwhy: %llu bytes asked, the device's heap has %llu\ntry: smaller batches", ull(bytes), ull(heap));
  const uint64_t size = round_up(std::max<uint64_t>(bytes, 16), 16);
  if (size > physical_.max_allocation_bytes)
    return fail(diag, TN_E_LIMIT, kErrOutOfMemory, VK_SUCCESS, "vulkan: too large for one buffer\nwhy: %llu bytes asked, the driver allows %llu\ntry: split the tensor", ull(bytes),
                ull(physical_.max_allocation_bytes));
  auto block = std::make_unique<Block>();
  block->bytes = bytes;
  VkMemoryRequirements need{};
  const std::lock_guard lock(mutex_);
  if (tn_status s = make_buffer(size, &block->buffer, &need, diag); s != TN_OK) return s;
  tn_status s = place(block.get(), need, std::max(need.alignment, std::max<uint64_t>(align, 1)), kind, diag);
  if (s == TN_OK) {
    s = translate(diag, fn_.vkBindBufferMemory(device_, block->buffer, block->chunk->memory, block->offset), "vkBindBufferMemory");
    if (block->chunk->mapped != nullptr) block->host = block->chunk->mapped + block->offset;
    *out = block.get();
    blocks_.emplace(*out, std::move(block));
    if (s == TN_OK) return s;
    free_locked(*out);
    return s;
  }
  fn_.vkDestroyBuffer(device_, block->buffer, nullptr);
  return s;
}

void Allocator::free(Block* block) {
  const std::lock_guard lock(mutex_);
  free_locked(block);
}

void Allocator::free_locked(Block* block) {
  fn_.vkDestroyBuffer(device_, block->buffer, nullptr);
  Chunk* chunk = block->chunk;
  chunk->ranges.give(block->offset, block->reserved_bytes);
  blocks_.erase(block);
  if (!chunk->ranges.untouched()) return;
  const bool other_spare = std::any_of(chunks_.begin(), chunks_.end(), [chunk](const auto& c) {
    return c.get() != chunk && c->kind == chunk->kind && c->shared && c->ranges.untouched();
  });
  if (!chunk->shared || other_spare) release(chunk);
}

uint32_t Allocator::allocation_count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(chunks_.size());
}

}  // namespace tenon::vulkan
