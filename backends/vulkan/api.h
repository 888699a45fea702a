// backends/vulkan/api.h - the functions of Vulkan that this plugin calls, all found at run time.
//
// The library is opened with dlopen (instance.cpp) and everything comes through vkGetInstanceProcAddr: no link to a loader, no
// prototypes, so that a call which is not in these tables does not compile.
#pragma once
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

// Without an instance.
#define VULKAN_GLOBAL_FUNCTIONS(X) X(vkCreateInstance) X(vkEnumerateInstanceVersion) X(vkEnumerateInstanceLayerProperties)
// Of an instance. The last two exist only with VK_EXT_debug_utils.
#define VULKAN_INSTANCE_FUNCTIONS(X)                                                                                    \
  X(vkDestroyInstance) X(vkEnumeratePhysicalDevices) X(vkEnumerateDeviceExtensionProperties) X(vkGetPhysicalDeviceFeatures2) \
  X(vkGetPhysicalDeviceProperties2) X(vkGetPhysicalDeviceMemoryProperties2) X(vkGetPhysicalDeviceQueueFamilyProperties)  \
  X(vkCreateDevice) X(vkGetDeviceProcAddr)
#define VULKAN_DEBUG_FUNCTIONS(X) X(vkCreateDebugUtilsMessengerEXT) X(vkDestroyDebugUtilsMessengerEXT)
// Of a device: through vkGetDeviceProcAddr, which saves a jump on each call.
#define VULKAN_DEVICE_FUNCTIONS(X)                                                                                      \
  X(vkDestroyDevice) X(vkGetDeviceQueue) X(vkQueueSubmit) X(vkDeviceWaitIdle)                                            \
  X(vkAllocateMemory) X(vkFreeMemory) X(vkMapMemory) X(vkCreateBuffer) X(vkDestroyBuffer)                                \
  X(vkGetBufferMemoryRequirements) X(vkBindBufferMemory)                                                                \
  X(vkCreateSemaphore) X(vkDestroySemaphore) X(vkWaitSemaphores) X(vkGetSemaphoreCounterValue)                           \
  X(vkCreateCommandPool) X(vkDestroyCommandPool) X(vkAllocateCommandBuffers) X(vkBeginCommandBuffer) X(vkEndCommandBuffer) \
  X(vkCmdPipelineBarrier) X(vkCmdCopyBuffer) X(vkCmdFillBuffer) X(vkCmdBindPipeline) X(vkCmdBindDescriptorSets)           \
  X(vkCmdPushConstants) X(vkCmdDispatch)                                                                                \
  X(vkCreateDescriptorPool) X(vkDestroyDescriptorPool) X(vkResetDescriptorPool) X(vkAllocateDescriptorSets)               \
  X(vkUpdateDescriptorSets) X(vkCreateDescriptorSetLayout) X(vkDestroyDescriptorSetLayout)                               \
  X(vkCreatePipelineLayout) X(vkDestroyPipelineLayout) X(vkCreateShaderModule) X(vkDestroyShaderModule)                   \
  X(vkCreateComputePipelines) X(vkDestroyPipeline) X(vkCreatePipelineCache) X(vkDestroyPipelineCache)

// Of VK_EXT_external_memory_host; NULL on devices without it.
#define VULKAN_HOST_IMPORT_FUNCTIONS(X) X(vkGetMemoryHostPointerPropertiesEXT)

namespace tenon::vulkan {

#define VULKAN_MEMBER(name) PFN_##name name = nullptr;
struct InstanceApi {
  PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr = nullptr;
  VULKAN_GLOBAL_FUNCTIONS(VULKAN_MEMBER)
  VULKAN_INSTANCE_FUNCTIONS(VULKAN_MEMBER)
  VULKAN_DEBUG_FUNCTIONS(VULKAN_MEMBER)
};
struct DeviceApi {
  VULKAN_DEVICE_FUNCTIONS(VULKAN_MEMBER)
  VULKAN_HOST_IMPORT_FUNCTIONS(VULKAN_MEMBER)
};
#undef VULKAN_MEMBER

}  // namespace tenon::vulkan
