// backends/vulkan/status.cpp - see status.h.
#include "backends/vulkan/status.h"

#include <cstdarg>
#include <cstdio>

#include "ops/gpu/diag.h"

namespace tenon::vulkan {

const char* result_name(VkResult result, char (&room)[32]) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED: return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT: return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT: return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS: return "VK_ERROR_TOO_MANY_OBJECTS";
    case VK_ERROR_FRAGMENTED_POOL: return "VK_ERROR_FRAGMENTED_POOL";
    case VK_ERROR_UNKNOWN: return "VK_ERROR_UNKNOWN";
    case VK_ERROR_OUT_OF_POOL_MEMORY: return "VK_ERROR_OUT_OF_POOL_MEMORY";
    case VK_ERROR_INVALID_EXTERNAL_HANDLE: return "VK_ERROR_INVALID_EXTERNAL_HANDLE";
    case VK_ERROR_FRAGMENTATION: return "VK_ERROR_FRAGMENTATION";
    default: std::snprintf(room, sizeof room, "VkResult %d", static_cast<int>(result)); return room;
  }
}

tn_status fail(tn_diag* diag, tn_status status, uint32_t id, VkResult result, const char* format, ...) {
  va_list args;
  va_start(args, format);
  gpu::vreport(diag, status, id, format, args);
  va_end(args);
  if (diag != nullptr && result != VK_SUCCESS) diag->native_code = result, diag->native_domain = TN_KIND_VULKAN;
  return status;
}

tn_status translate(tn_diag* diag, VkResult result, const char* call) {
  if (result >= 0) return TN_OK;
  char room[32];
  const char* name = result_name(result, room);
  switch (result) {
    case VK_ERROR_DEVICE_LOST:
      return fail(diag, TN_E_DEVICE_LOST, kErrLost, result,
                  "vulkan: the device is lost\nwhy: %s said %s\ntry: look into the system log for a reset or fault of the GPU", call, name);
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_MEMORY_MAP_FAILED:
    case VK_ERROR_FRAGMENTATION:
      return fail(diag, TN_E_OOM, kErrOutOfMemory, result, "vulkan: out of memory\nwhy: %s said %s\ntry: smaller batches, or release tensors", call, name);
    default:
      return fail(diag, TN_E_FAILED, kErrRefused, result,
                  "vulkan: the driver refused a call\nwhy: %s said %s\ntry: set vulkan.validation=1 and read the messages in the log", call, name);
  }
}

}  // namespace tenon::vulkan
