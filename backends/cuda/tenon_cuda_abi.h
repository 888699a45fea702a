// backends/cuda/tenon_cuda_abi.h - what this backend takes from CUDA's driver API and NVRTC: symbols and numbers, from the
// published manuals. No header of the toolkit is needed to build; tests/cuda compares this with cuda.h where that is present.
//
// Functions are listed under the names that the library exports: where the API was revised, cuda.h maps the plain name to
// the one with _v2, and the plain symbol is the old function with 32-bit sizes.
#pragma once
#include <cstddef>

#include "backends/gpu_common/cu_like/api.h"

#define TENON_CUDA_CALLS(X, OPTIONAL) \
  X(init, cuInit) \
  X(driver_version, cuDriverGetVersion) \
  X(device_count, cuDeviceGetCount) \
  X(device_get, cuDeviceGet) \
  X(device_name, cuDeviceGetName) \
  OPTIONAL(device_uuid, cuDeviceGetUuid_v2) \
  OPTIONAL(device_uuid, cuDeviceGetUuid) \
  X(device_pci, cuDeviceGetPCIBusId) \
  X(device_memory, cuDeviceTotalMem_v2) \
  X(device_attribute, cuDeviceGetAttribute) \
  X(priority_range, cuCtxGetStreamPriorityRange) \
  X(mem_info, cuMemGetInfo_v2) \
  X(mem_alloc, cuMemAlloc_v2) \
  X(mem_free, cuMemFree_v2) \
  OPTIONAL(mem_alloc_async, cuMemAllocAsync) \
  OPTIONAL(mem_free_async, cuMemFreeAsync) \
  X(host_alloc, cuMemHostAlloc) \
  X(host_free, cuMemFreeHost) \
  X(host_device_pointer, cuMemHostGetDevicePointer_v2) \
  X(copy_to_device, cuMemcpyHtoDAsync_v2) \
  X(copy_to_host, cuMemcpyDtoHAsync_v2) \
  X(copy_on_device, cuMemcpyDtoDAsync_v2) \
  X(set_words, cuMemsetD32Async) \
  X(stream_create, cuStreamCreateWithPriority) \
  X(stream_destroy, cuStreamDestroy_v2) \
  X(stream_sync, cuStreamSynchronize) \
  X(stream_wait_event, cuStreamWaitEvent) \
  X(event_create, cuEventCreate) \
  X(event_destroy, cuEventDestroy_v2) \
  X(event_record, cuEventRecord) \
  X(event_query, cuEventQuery) \
  X(event_sync, cuEventSynchronize) \
  X(module_load, cuModuleLoadData) \
  X(module_unload, cuModuleUnload) \
  X(module_function, cuModuleGetFunction) \
  X(launch, cuLaunchKernel) \
  X(error_name, cuGetErrorName) \
  X(error_text, cuGetErrorString) \
  X(context_retain, cuDevicePrimaryCtxRetain) \
  X(context_release, cuDevicePrimaryCtxRelease_v2) \
  X(context_push, cuCtxPushCurrent_v2) \
  X(context_pop, cuCtxPopCurrent_v2)

namespace tenon::cuda {

// CUdevice_attribute.
enum : int {
  kMaxThreadsPerBlock = 1, kMaxBlockDimX = 2, kMaxBlockDimY = 3, kMaxBlockDimZ = 4, kMaxGridDimX = 5, kMaxGridDimY = 6, kMaxGridDimZ = 7, kMaxSharedMemoryPerBlock = 8,
  kWarpSize = 10, kClockRate = 13, kMultiprocessorCount = 16, kIntegrated = 18, kMemoryClockRate = 36, kGlobalMemoryBusWidth = 37, kL2CacheSize = 38,
  kComputeCapabilityMajor = 75, kComputeCapabilityMinor = 76, kMemoryPoolsSupported = 115,
};
constexpr gpu::cu_like::Attributes kAttributes = {
    kWarpSize, kMaxThreadsPerBlock, {kMaxBlockDimX, kMaxBlockDimY, kMaxBlockDimZ}, {kMaxGridDimX, kMaxGridDimY, kMaxGridDimZ}, kMaxSharedMemoryPerBlock, kMultiprocessorCount,
    kClockRate, kMemoryClockRate, kGlobalMemoryBusWidth, kL2CacheSize, kIntegrated, kComputeCapabilityMajor, kComputeCapabilityMinor, kMemoryPoolsSupported};

// CUresult beyond those that HIP shares (cu_like::Code).
enum : int { kSystemNotReady = 802, kSystemDriverMismatch = 803, kCompatNotSupported = 804 };

// NVRTC: X(member, symbol, parameters), all return nvrtcResult.
using NvrtcProgram = struct OpaqueNvrtcProgram*;
#define TENON_NVRTC_CALLS(X) \
  X(version, nvrtcVersion, (int* major, int* minor)) \
  X(arch_count, nvrtcGetNumSupportedArchs, (int* out)) \
  X(archs, nvrtcGetSupportedArchs, (int* out)) \
  X(create, nvrtcCreateProgram, (NvrtcProgram * out, const char* text, const char* name, int n_headers, const char* const* headers, const char* const* names)) \
  X(destroy, nvrtcDestroyProgram, (NvrtcProgram * program)) \
  X(compile, nvrtcCompileProgram, (NvrtcProgram program, int n_options, const char* const* options)) \
  X(log_size, nvrtcGetProgramLogSize, (NvrtcProgram program, size_t* out)) \
  X(log, nvrtcGetProgramLog, (NvrtcProgram program, char* out)) \
  X(cubin_size, nvrtcGetCUBINSize, (NvrtcProgram program, size_t* out)) \
  X(cubin, nvrtcGetCUBIN, (NvrtcProgram program, char* out)) \
  X(ptx_size, nvrtcGetPTXSize, (NvrtcProgram program, size_t* out)) \
  X(ptx, nvrtcGetPTX, (NvrtcProgram program, char* out))

}  // namespace tenon::cuda
