// backends/vulkan/gpu.h - one opened VkDevice and what all its streams, fences and kernels share.
//
// Shared ownership: a fence may outlive its stream, and the device's own object. Threads: any; what Vulkan wants
// synchronized has a lock beside it.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/vulkan/api.h"
#include "backends/vulkan/instance.h"
#include "backends/vulkan/landings.h"
#include "backends/vulkan/memory.h"
#include "backends/vulkan/physical.h"
#include "backends/vulkan/staging.h"

namespace tenon::vulkan {

// A VkQueue; streams share it when the device has fewer queues than there are streams.
struct Queue {
  VkQueue handle = VK_NULL_HANDLE;
  std::mutex mutex;               // of submissions
  std::atomic<uint32_t> streams{0};
  bool urgent = false;            // for streams of positive priority
};

class Gpu {
 public:
  static tn_status open(std::shared_ptr<Instance>, const Physical&, std::shared_ptr<Gpu>*, tn_diag*);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  // TN_OK for success, else the error, which is remembered when it is the device's loss.
  tn_status check(VkResult, const char* call, tn_diag*);
  // TN_E_DEVICE_LOST with the driver's words once the device is lost.
  tn_status alive(tn_diag*) const;
  // The queue with the fewest streams among those for this priority; give it back by lowering `streams`.
  Queue* choose_queue(int32_t priority);
  uint64_t next_stream() { return stream_numbers_.fetch_add(1) + 1; }

  const std::shared_ptr<Instance> instance;
  const Physical physical;
  DeviceApi fn;
  VkDevice device = VK_NULL_HANDLE;
  VkPipelineCache cache = VK_NULL_HANDLE;
  std::vector<std::unique_ptr<Queue>> queues;
  Landings landings;
  std::unique_ptr<Allocator> memory;
  std::unique_ptr<Staging> staging;
  Block* nothing = nullptr;  // bound where an operand has no bytes

 private:
  Gpu(std::shared_ptr<Instance> i, const Physical& p) : instance(std::move(i)), physical(p) {}
  tn_status create(tn_diag*);

  std::atomic<bool> lost_{false};
  mutable std::mutex lost_mutex_;
  tn_diag loss_{};
  std::atomic<uint64_t> stream_numbers_{0};
};

}  // namespace tenon::vulkan
