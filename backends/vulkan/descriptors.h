// backends/vulkan/descriptors.h - descriptor sets of one stream, out of pools that are emptied as a whole and used again.
#pragma once
#include <memory>
#include <vector>

#include "backends/vulkan/gpu.h"

namespace tenon::vulkan {

// Threads: the stream's one.
class SetPools {
 public:
  struct Pool {
    VkDescriptorPool handle = VK_NULL_HANDLE;
  };
  explicit SetPools(Gpu* gpu) : gpu_(gpu) {}
  ~SetPools();  // after all work that uses the sets
  SetPools(const SetPools&) = delete;
  SetPools& operator=(const SetPools&) = delete;

  // A set of `n_bindings` storage buffers. `pool` keeps it valid: hold it until the work that uses the set has finished.
  tn_status take(VkDescriptorSetLayout, uint32_t n_bindings, VkDescriptorSet* out, std::shared_ptr<Pool>* pool, tn_diag*);

 private:
  tn_status next_pool(tn_diag*);

  Gpu* gpu_;
  std::vector<std::shared_ptr<Pool>> pools_;
  std::shared_ptr<Pool> current_;
  uint32_t sets_left_ = 0, descriptors_left_ = 0;
};

}  // namespace tenon::vulkan
