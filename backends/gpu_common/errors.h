// backends/gpu_common/errors.h - error ids of what all GPU plugins share (docs/errors/TN-DEVICE-gpu.md), and filling a tn_diag.
#pragma once
#include <tenon/types.h>

#include <cstdarg>
#include <cstdio>

namespace tenon::gpu {

constexpr uint32_t gpu_error_id(uint32_t number) { return 7u << 16 | number; }
inline constexpr uint32_t kErrConfig = gpu_error_id(60), kErrNoSuchDevice = gpu_error_id(61), kErrView = gpu_error_id(62), kErrLaunch = gpu_error_id(63),
                          kErrOutOfMemory = gpu_error_id(64), kErrTimeline = gpu_error_id(65), kErrTimeout = gpu_error_id(66), kErrOption = gpu_error_id(67),
                          kErrSpace = gpu_error_id(68), kErrBusy = gpu_error_id(69), kErrForeign = gpu_error_id(70), kErrTooLarge = gpu_error_id(71);

// Returns `status`. diag may be NULL. "<what>\nwhy: ...\ntry: ...", cut to the 224 bytes.
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
inline tn_status
report(tn_diag* diag, tn_status status, uint32_t id, const char* format, ...) {
  if (diag == nullptr) return status;
  *diag = tn_diag{};
  diag->size = sizeof *diag;
  diag->status = status;
  diag->id = id;
  va_list args;
  va_start(args, format);
  const int n = std::vsnprintf(diag->msg, sizeof diag->msg, format, args);
  va_end(args);
  const int last = static_cast<int>(sizeof diag->msg) - 1;
  diag->len = static_cast<uint32_t>(n < 0 ? 0 : n > last ? last : n);
  return status;
}

inline unsigned long long ull(uint64_t x) { return x; }

}  // namespace tenon::gpu
