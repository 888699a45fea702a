// backends/rocm/tenon_hip_abi.h - what this backend takes from the HIP runtime and hiprtc: symbols and numbers, from the
// published manuals. No header of ROCm is needed to build; tests/cuda compares this with hip_runtime_api.h where present.
#pragma once
#include <cstddef>

#include "backends/gpu_common/cu_like/api.h"

// hipDeviceProp_t changed its layout between HIP 5 and 6, with a symbol for each; only the architecture's name is read from it.
#define TENON_HIP_CALLS(X, OPTIONAL) \
  X(init, hipInit) \
  X(driver_version, hipDriverGetVersion) \
  X(device_count, hipGetDeviceCount) \
  X(device_get, hipDeviceGet) \
  X(device_name, hipDeviceGetName) \
  OPTIONAL(device_uuid, hipDeviceGetUuid) \
  X(device_pci, hipDeviceGetPCIBusId) \
  X(device_memory, hipDeviceTotalMem) \
  X(device_attribute, hipDeviceGetAttribute) \
  X(priority_range, hipDeviceGetStreamPriorityRange) \
  X(mem_info, hipMemGetInfo) \
  X(mem_alloc, hipMalloc) \
  X(mem_free, hipFree) \
  OPTIONAL(mem_alloc_async, hipMallocAsync) \
  OPTIONAL(mem_free_async, hipFreeAsync) \
  X(host_alloc, hipHostMalloc) \
  X(host_free, hipHostFree) \
  X(host_device_pointer, hipHostGetDevicePointer) \
  X(copy_to_device, hipMemcpyHtoDAsync) \
  X(copy_to_host, hipMemcpyDtoHAsync) \
  X(copy_on_device, hipMemcpyDtoDAsync) \
  X(set_words, hipMemsetD32Async) \
  X(stream_create, hipStreamCreateWithPriority) \
  X(stream_destroy, hipStreamDestroy) \
  X(stream_sync, hipStreamSynchronize) \
  X(stream_wait_event, hipStreamWaitEvent) \
  X(event_create, hipEventCreateWithFlags) \
  X(event_destroy, hipEventDestroy) \
  X(event_record, hipEventRecord) \
  X(event_query, hipEventQuery) \
  X(event_sync, hipEventSynchronize) \
  X(module_load, hipModuleLoadData) \
  X(module_unload, hipModuleUnload) \
  X(module_function, hipModuleGetFunction) \
  X(launch, hipModuleLaunchKernel) \
  X(hip_error_name, hipGetErrorName) \
  X(hip_error_text, hipGetErrorString) \
  X(set_device, hipSetDevice) \
  X(get_device, hipGetDevice) \
  OPTIONAL(device_properties, hipGetDevicePropertiesR0600) \
  OPTIONAL(device_properties, hipGetDeviceProperties)

namespace tenon::rocm {

// hipDeviceAttribute_t; these values are the same in HIP 5, 6 and 7.
enum : int {
  kClockRate = 5, kIntegrated = 16, kL2CacheSize = 19, kComputeCapabilityMajor = 23, kMaxBlockDimX = 26, kMaxBlockDimY = 27, kMaxBlockDimZ = 28, kMaxGridDimX = 29,
  kMaxGridDimY = 30, kMaxGridDimZ = 31, kMaxThreadsPerBlock = 56, kMemoryBusWidth = 59, kMemoryClockRate = 60, kComputeCapabilityMinor = 61, kMultiprocessorCount = 63,
  kMaxSharedMemoryPerBlock = 74, kWarpSize = 87, kMemoryPoolsSupported = 88,
};
constexpr gpu::cu_like::Attributes kAttributes = {
    kWarpSize, kMaxThreadsPerBlock, {kMaxBlockDimX, kMaxBlockDimY, kMaxBlockDimZ}, {kMaxGridDimX, kMaxGridDimY, kMaxGridDimZ}, kMaxSharedMemoryPerBlock, kMultiprocessorCount,
    kClockRate, kMemoryClockRate, kMemoryBusWidth, kL2CacheSize, kIntegrated, kComputeCapabilityMajor, kComputeCapabilityMinor, kMemoryPoolsSupported};
constexpr size_t kPropertiesBytes = 4096;  // room for hipDeviceProp_t of any version (792 bytes in HIP 5.2, 1472 in 7.1)
constexpr size_t kNameBytes = 256;         // its first member, the device's name

// hiprtc: X(member, symbol, parameters), all return hiprtcResult. Called in a process of its own but for the version.
using RtcProgram = struct OpaqueRtcProgram*;
#define TENON_HIPRTC_CALLS(X) \
  X(version, hiprtcVersion, (int* major, int* minor)) \
  X(create, hiprtcCreateProgram, (::tenon::rocm::RtcProgram * out, const char* text, const char* name, int n_headers, const char* const* headers, const char* const* names)) \
  X(destroy, hiprtcDestroyProgram, (::tenon::rocm::RtcProgram * program)) \
  X(compile, hiprtcCompileProgram, (::tenon::rocm::RtcProgram program, int n_options, const char* const* options)) \
  X(log_size, hiprtcGetProgramLogSize, (::tenon::rocm::RtcProgram program, size_t* out)) \
  X(log, hiprtcGetProgramLog, (::tenon::rocm::RtcProgram program, char* out)) \
  X(code_size, hiprtcGetCodeSize, (::tenon::rocm::RtcProgram program, size_t* out)) \
  X(code, hiprtcGetCode, (::tenon::rocm::RtcProgram program, char* out))

}  // namespace tenon::rocm
