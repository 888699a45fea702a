// backends/vulkan/host_import.h - host memory as a buffer of the device, so that large copies need no staging.
#pragma once
#include <memory>

#include "backends/vulkan/gpu.h"

namespace tenon::vulkan {

class HostImport {
 public:
  // The pages around `host`..`host + bytes`; NULL where the driver does not take them (read-only mappings, for one), which
  // is no error: the copy goes through staging memory then.
  static std::shared_ptr<HostImport> make(Gpu*, void* host, uint64_t bytes);
  ~HostImport();
  HostImport(const HostImport&) = delete;
  HostImport& operator=(const HostImport&) = delete;

  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t offset = 0;  // of `host` in the buffer

 private:
  explicit HostImport(Gpu* gpu) : gpu_(gpu) {}
  bool create_buffer(uint64_t bytes);
  bool bind_pages(void* first_page, uint64_t bytes);

  Gpu* gpu_;  // outlives all work that uses this
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
};

// Copies from this size on are worth an import.
inline constexpr uint64_t kImportBytes = uint64_t{1} << 20;

}  // namespace tenon::vulkan
