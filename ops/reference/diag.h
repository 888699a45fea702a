// ops/reference/diag.h - filling a tn_diag: "<what>\nwhy: ...\ntry: ...", cut to its 224 bytes, never overrun.
//
//   return fail(diag, TN_E_OOM, error_id(40), "alloc: no memory\nwhy: %llu bytes asked\ntry: smaller batches", n);
//
// Threads: any; diag is the caller's and may be NULL.
#pragma once
#include <tenon/types.h>

#include <cstdarg>
#include <cstdio>

namespace tenon::reference {

// Ids of family DEVICE (7), printed as TN-DEVICE-040; pages in docs/errors/TN-DEVICE-sim.md.
constexpr uint32_t error_id(uint32_t number) { return 7u << 16 | number; }
inline constexpr uint32_t kErrIndexOutside = error_id(40), kErrNotRunnable = error_id(41), kErrNoHostPointer = error_id(42),
                          kErrOutOfMemory = error_id(43), kErrTimeout = error_id(44), kErrTimelineBackwards = error_id(45),
                          kErrNoSuchDevice = error_id(46), kErrOutsideBuffer = error_id(47), kErrConfig = error_id(48),
                          kErrNoSuchSpace = error_id(49), kErrViewCount = error_id(50), kErrAlignment = error_id(51),
                          kErrLost = error_id(52), kErrTooLarge = error_id(53);

#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
inline tn_status
fail(tn_diag* diag, tn_status status, uint32_t id, const char* format, ...) {
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

}  // namespace tenon::reference
