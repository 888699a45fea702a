// backends/gpu_common/errors.h - error ids of what all GPU plugins share (docs/errors/TN-DEVICE-gpu.md) beside those of ops/gpu/diag.h.
#pragma once
#include "ops/gpu/diag.h"

namespace tenon::gpu {

inline constexpr uint32_t kErrConfig = gpu_error_id(60), kErrNoSuchDevice = gpu_error_id(61), kErrView = gpu_error_id(62), kErrLaunch = gpu_error_id(63),
                          kErrTimeline = gpu_error_id(65), kErrTimeout = gpu_error_id(66), kErrOption = gpu_error_id(67),
                          kErrSpace = gpu_error_id(68), kErrBusy = gpu_error_id(69), kErrForeign = gpu_error_id(70), kErrTooLarge = gpu_error_id(71), kErrLost = gpu_error_id(74);

inline unsigned long long ull(uint64_t x) { return x; }

}  // namespace tenon::gpu
