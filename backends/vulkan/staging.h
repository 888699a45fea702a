// backends/vulkan/staging.h - mapped memory that copies and parameter blocks pass through, recycled in slabs.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/vulkan/memory.h"

namespace tenon::vulkan {

inline constexpr uint64_t kSlabBytes = uint64_t{4} << 20;

struct Slab {
  Block* block = nullptr;
  uint64_t used = 0;  // by the one stream that fills it
};

// Threads: any. A slab belongs to who holds it and comes back when the last holder lets go; slabs must not outlive the Staging.
class Staging {
 public:
  // most_bytes: how much may be under way before copies have to wait for earlier ones.
  Staging(Allocator* memory, uint64_t most_bytes) : memory_(memory), most_(most_bytes) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  tn_status take(std::shared_ptr<Slab>* out, tn_diag*);
  bool full() const { return out_.load() * kSlabBytes >= most_; }

 private:
  void give(Slab*);

  Allocator* memory_;
  const uint64_t most_;
  std::atomic<uint64_t> out_{0};  // slabs in use
  std::mutex mutex_;
  std::vector<std::unique_ptr<Slab>> idle_;
};

}  // namespace tenon::vulkan
