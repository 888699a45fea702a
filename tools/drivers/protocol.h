// tools/drivers/protocol.h - what tenon-drivers and the command that starts it say to each other.
//
//   tenon-drivers library libOpenCL.so.1 clGetPlatformIDs     can this be loaded, and is the symbol there
//   tenon-drivers opencl  libpocl.so.2                        load one OpenCL driver, start it, list its devices
//   tenon-drivers vulkan  /usr/lib/libvulkan_lvp.so           the same of a Vulkan driver
//   tenon-drivers cuda    libcuda.so.1
//   tenon-drivers rocm    libamdhip64.so.6 libamdhip64.so.5   the first that is there
//   tenon-drivers nodes   /dev/kfd /dev/dri/renderD128        open each
//
// The child names each stage on descriptor 3 before it enters it, and ends with a record of its own: one JSON object a line.
//   {"stage":"load"}                                          load, start, devices, end
//   {"library":"/usr/lib/libx.so.2.1","stamp":"..."}          a file that is in use: its answer is no longer true when that changes
//   {"device":{"platform","name","type","version","driver","memory_bytes","software","vendor_id","device_id","pci"}}
//   {"fault":{"reason","why",...}}                            the reasons of tools/tenon/look/drivers.h, and what belongs to them
//   {"done":true}
#pragma once
#include <cstddef>
#include <cstdint>

namespace tenon::drivers {

inline constexpr int kPipe = 3;
inline constexpr size_t kAnswerLimit = 1 << 20;  // bytes of one answer that are kept
inline constexpr const char* kStages[] = {"load", "start", "devices", "open", "end"};

// The oldest version of each interface that a backend of Tenon can be written for.
struct Version {
  uint32_t major = 0, minor = 0;
  bool operator<(const Version& o) const { return major != o.major ? major < o.major : minor < o.minor; }
};
inline constexpr Version kNeedOpenCL{1, 2}, kNeedVulkan{1, 1}, kNeedCuda{11, 0}, kNeedRocm{5, 0};

}  // namespace tenon::drivers
