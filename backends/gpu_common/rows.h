// backends/gpu_common/rows.h - the capability that tells the classes of a plugin's devices apart.
#pragma once
#include <cstdint>

namespace tenon::gpu {

inline constexpr uint32_t kCapKernelClass = 0x80000000u | 0x475055u;  // a number; only where a plugin has devices of several classes

}  // namespace tenon::gpu
