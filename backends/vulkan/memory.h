// backends/vulkan/memory.h - device memory: many buffers out of few allocations, since drivers may allow only 4096 of those.
//
// A buffer of at most half a chunk lies in a chunk shared with others; a larger one has an allocation of its own. Freed
// chunks go back to the driver, but one of each kind that is kept for the next buffer.
#pragma once
#include <tenon/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/vulkan/api.h"
#include "backends/vulkan/physical.h"

namespace tenon::vulkan {

// Which bytes of [0, size) are free. Knows no device. Offsets and sizes in bytes.
class FreeRanges {
 public:
  explicit FreeRanges(uint64_t size) : size_(size) { free_.emplace(0, size); }
  // The smallest free range that holds `bytes` from a multiple of `align` (a power of two) on. False: none.
  bool take(uint64_t bytes, uint64_t align, uint64_t* offset);
  void give(uint64_t offset, uint64_t bytes);  // what was taken; neighbours grow together
  bool untouched() const { return free_.size() == 1 && free_.begin()->second == size_; }

 private:
  uint64_t size_;
  std::map<uint64_t, uint64_t> free_;  // offset -> bytes
};

enum class MemoryKind : uint8_t { Device, Host };

struct Chunk {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  char* mapped = nullptr;
  uint64_t bytes = 0;
  MemoryKind kind = MemoryKind::Device;
  bool shared = false;  // holds several buffers
  FreeRanges ranges{0};
};

// One buffer. `bytes` is what was asked for; the VkBuffer is up to 15 bytes longer, so that words can be read at its end.
struct Block {
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t bytes = 0;
  char* host = nullptr;
  Chunk* chunk = nullptr;
  uint64_t offset = 0, reserved_bytes = 0;  // in the chunk
};

// Threads: any.
class Allocator {
 public:
  Allocator(const DeviceApi& fn, VkDevice, const Physical&);
  ~Allocator();  // frees what is left
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // MemoryKind::Host: permanently mapped and coherent. errors: TN_E_OOM; TN_E_LIMIT beyond what one allocation may have.
  tn_status alloc(uint64_t bytes, uint64_t align, MemoryKind, Block** out, tn_diag*);
  void free(Block*);
  uint64_t chunk_bytes(MemoryKind kind) const { return chunk_bytes_[static_cast<int>(kind)]; }
  uint32_t allocation_count() const;  // of the driver, now

 private:
  tn_status make_buffer(uint64_t bytes, VkBuffer*, VkMemoryRequirements*, tn_diag*);
  tn_status new_chunk(uint64_t bytes, MemoryKind, bool shared, Chunk** out, tn_diag*);
  tn_status place(Block*, const VkMemoryRequirements&, uint64_t align, MemoryKind, tn_diag*);
  uint64_t& used_of(MemoryKind);
  void release(Chunk*);
  void free_locked(Block*);

  const DeviceApi& fn_;
  VkDevice device_;
  const Physical& physical_;
  uint32_t type_[2] = {};  // memory type of each kind
  uint64_t chunk_bytes_[2] = {}, heap_bytes_[2] = {};
  uint64_t used_bytes_[VK_MAX_MEMORY_HEAPS] = {};  // what chunks take of each heap
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::map<Block*, std::unique_ptr<Block>> blocks_;
};

// The memory type that suits `kind` best among those allowed; VK_MAX_MEMORY_TYPES when there is none. Device memory rather
// without a host address on cards with their own memory, where that part is small; host memory rather cached.
uint32_t choose_memory_type(const VkPhysicalDeviceMemoryProperties&, MemoryKind, uint32_t allowed_mask);

}  // namespace tenon::vulkan
