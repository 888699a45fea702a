// backends/gpu_common/cu_like/errors.h - error ids of the CUDA and ROCm backends (docs/errors/TN-DEVICE-cuda.md), and how a
// driver's number becomes a status.
#pragma once
#include <string>

#include "ops/gpu/diag.h"

namespace tenon::gpu::cu_like {

constexpr uint32_t error_id(uint32_t family, uint32_t number) { return family << 16 | number; }
constexpr uint32_t kErrNoLibrary = error_id(7, 120);     // the driver's library cannot be opened
constexpr uint32_t kErrNoStart = error_id(7, 121);       // the driver does not start
constexpr uint32_t kErrNoDevice = error_id(7, 122);      // the driver finds no device
constexpr uint32_t kErrNoCompiler = error_id(7, 123);    // the run-time compiler's library cannot be opened
constexpr uint32_t kErrDriverCall = error_id(7, 124);    // a driver call failed
constexpr uint32_t kErrLost = error_id(7, 125);          // the device is lost
constexpr uint32_t kErrMemory = error_id(7, 126);        // out of device or pinned memory
constexpr uint32_t kErrCompile = error_id(7, 127);       // a kernel text does not compile
constexpr uint32_t kErrCompilerProcess = error_id(7, 128);  // the compiler's process crashed, hung or is absent
constexpr uint32_t kErrArchitecture = error_id(7, 129);  // the compiler does not know the device's architecture
constexpr uint32_t kErrLaunch = error_id(7, 130);        // a launch that the device cannot take
constexpr uint32_t kErrNotDone = error_id(7, 131);       // work was not finished in time
constexpr uint32_t kErrOtherDevice = error_id(7, 132);   // a fence of another device

// Errors after which a context takes no more work: a kernel that trapped, memory or a link that lost bits, a device that left.
bool is_sticky(int code);

// report() of ops/gpu/diag.h with its three lines in parts; `why`, a text of foreign length, is cut so that `advice` stays whole.
tn_status fail_why(tn_diag* diag, tn_status status, uint32_t id, const std::string& what, const std::string& why, const char* advice);

}  // namespace tenon::gpu::cu_like
