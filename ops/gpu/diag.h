// ops/gpu/diag.h - filling a tn_diag, for the kernel texts and all backends that use them: "<what>\nwhy: ...\ntry: ...", cut to its
// 224 bytes, never overrun. Pages of the ids: docs/errors/TN-DEVICE-gpu.md.
//
// Threads: any; diag is the caller's and may be NULL. Both functions return `status`.
#pragma once
#include <tenon/types.h>

#include <cstdarg>
#include <cstdio>

namespace tenon::gpu {

constexpr uint32_t gpu_error_id(uint32_t number) { return 7u << 16 | number; }  // of family DEVICE
inline constexpr uint32_t kErrOutOfMemory = gpu_error_id(64), kErrNotTaken = gpu_error_id(72), kErrKernelFailed = gpu_error_id(73);

inline tn_status vreport(tn_diag* diag, tn_status status, uint32_t id, const char* format, va_list args) {
  if (diag == nullptr) return status;
  *diag = tn_diag{};
  diag->size = sizeof *diag;
  diag->status = status;
  diag->id = id;
  const int n = std::vsnprintf(diag->msg, sizeof diag->msg, format, args);
  const int last = static_cast<int>(sizeof diag->msg) - 1;
  diag->len = static_cast<uint32_t>(n < 0 ? 0 : n > last ? last : n);
  return status;
}

#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
inline tn_status
report(tn_diag* diag, tn_status status, uint32_t id, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vreport(diag, status, id, format, args);
  va_end(args);
  return status;
}

}  // namespace tenon::gpu
