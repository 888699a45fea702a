// backends/vulkan/status.h - answers of the driver as Tenon's errors. Pages: docs/errors/TN-DEVICE-vulkan.md.
#pragma once
#include <tenon/types.h>

#include "backends/vulkan/api.h"

namespace tenon::vulkan {

constexpr uint32_t error_id(uint32_t family, uint32_t number) { return family << 16 | number; }
inline constexpr uint32_t kErrAbsent = error_id(7, 140), kErrLost = error_id(7, 141), kErrOutOfMemory = error_id(7, 142),
                          kErrText = error_id(7, 143), kErrRefused = error_id(7, 144), kErrNoSuchDevice = error_id(7, 145),
                          kErrArgument = error_id(7, 146), kErrConfig = error_id(7, 147), kErrTimeout = error_id(7, 148),
                          kErrForeignFence = error_id(7, 149), kErrSubgroup = error_id(7, 150);

// "VK_ERROR_DEVICE_LOST"; "VkResult -1234" for what this header does not name.
const char* result_name(VkResult, char (&room)[32]);

// Fills diag ("<what>\nwhy: ...\ntry: ...", printf style) with `result` as the driver's own number; returns `status`.
tn_status fail(tn_diag*, tn_status status, uint32_t id, VkResult result, const char* format, ...)
    __attribute__((format(printf, 5, 6)));

// TN_OK for a success, else the error that `result` of function `call` amounts to: lost, out of memory, refused.
tn_status translate(tn_diag*, VkResult result, const char* call);

}  // namespace tenon::vulkan
