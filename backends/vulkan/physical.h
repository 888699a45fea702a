// backends/vulkan/physical.h - what a physical device is and can do, asked without opening it.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "backends/gpu_common/driver.h"
#include "backends/vulkan/api.h"

namespace tenon::vulkan {

// A chain of feature structs, for asking and for opening. Not to be copied: its members point at each other.
struct Features {
  VkPhysicalDeviceFeatures2 core{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDeviceVulkan11Features v11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  VkPhysicalDeviceVulkan12Features v12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT subgroup{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT};
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT};

  Features() = default;
  Features(const Features&) = delete;
  Features& operator=(const Features&) = delete;
  // Chains the structs that a device with these extensions knows.
  void link(const std::set<std::string>& extensions);
  // Takes over what kernels can make use of, and nothing else: a feature that is switched on may cost speed
  // (robustBufferAccess), and drivers check what they are told.
  void take_useful(const Features& present);
};

struct Physical {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  std::set<std::string> extensions;
  uint32_t api_version = 0, queue_family = 0, n_queues = 1;
  VkPhysicalDeviceLimits limits{};
  VkPhysicalDeviceMemoryProperties memory{};
  uint64_t max_allocation_bytes = 0;   // of one vkAllocateMemory
  uint64_t import_align = 0;           // of host memory that copies reach in place; 0 = not offered
  bool full_subgroups = false;         // a work-group can be told to consist of full sub-groups
  bool atomic_float = false;
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  VkDriverId driver_id{};
  uint8_t driver_uuid[VK_UUID_SIZE] = {}, cache_uuid[VK_UUID_SIZE] = {};
  gpu::DeviceFacts facts;
  gpu::Caps caps;

  bool has(const char* extension) const { return extensions.count(extension) != 0; }
};

// Fills `out`. Returns "" or why this device cannot serve ("speaks Vulkan 1.0, 1.2 is needed").
std::string describe(const InstanceApi&, VkPhysicalDevice, Physical* out);

// All that can serve, in an order that does not depend on environment or layers: by type (discrete, integrated, virtual,
// processor), PCI address, UUID, driver. `refused` gets a line for each device left out.
std::vector<Physical> find_devices(const InstanceApi&, VkInstance, std::vector<std::string>* refused);

// Bytes of device memory that the driver lets this process take now; 0 = it does not say.
uint64_t budget_bytes(const InstanceApi&, const Physical&);

}  // namespace tenon::vulkan
