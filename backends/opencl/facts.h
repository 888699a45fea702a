// backends/opencl/facts.h - which devices there are, and what each can do: only what its driver says, and no more than is sane.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/gpu_common/driver.h"
#include "backends/opencl/api.h"

namespace tenon::gpu::opencl {

struct DeviceOf {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  std::string cache_key;      // platform, driver and device with their versions
  std::string build_options;  // that every text is compiled with
  std::string subgroup_options;  // instead, for texts that use sub-groups
  DeviceFacts facts;
};

// Platforms below OpenCL 1.2 and devices that cannot compile are left out; `skipped` says which and why, a line each.
std::vector<std::unique_ptr<DeviceOf>> find_devices(const Api&, std::vector<std::string>* skipped);

}  // namespace tenon::gpu::opencl
