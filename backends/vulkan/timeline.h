// backends/vulkan/timeline.h - how far a stream's work has come: one timeline semaphore, and fences as values of it.
#pragma once
#include <memory>

#include "backends/gpu_common/driver.h"
#include "backends/vulkan/gpu.h"

namespace tenon::vulkan {

// Threads: any.
class Timeline {
 public:
  static tn_status make(std::shared_ptr<Gpu>, std::shared_ptr<Timeline>* out, tn_diag*);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // TN_OK when `value` is reached, and then every host memory that work before it writes is written.
  tn_status wait(uint64_t value, uint64_t timeout_ns, tn_diag*);
  tn_status reached(uint64_t* value, tn_diag*);

  const std::shared_ptr<Gpu> gpu;
  const uint64_t stream;  // its number in Landings
  VkSemaphore semaphore = VK_NULL_HANDLE;

 private:
  explicit Timeline(std::shared_ptr<Gpu> g) : gpu(std::move(g)), stream(gpu->next_stream()) {}
};

class TimelineFence final : public gpu::Fence {
 public:
  TimelineFence(std::shared_ptr<Timeline> t, uint64_t v) : timeline(std::move(t)), value(v) {}
  tn_status wait(uint64_t timeout_ns, tn_diag* diag) override { return timeline->wait(value, timeout_ns, diag); }
  const std::shared_ptr<Timeline> timeline;
  const uint64_t value;
};

}  // namespace tenon::vulkan
