// Compiled where a CUDA toolkit is: tenon_cuda_abi.h says what cuda.h and nvrtc.h say. Nothing of it runs.
#include <cuda.h>
#include <nvrtc.h>

#include "backends/cuda/tenon_cuda_abi.h"
#include "tests/cuda/abi_shape.h"

#define SAME(ours, theirs) static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs));

namespace tenon::gpu::test {
using cu_like::Api;

// cuda.h has a define from each plain name to its revision, so the name here is the exported one either way. Revisions that it
// declares only in part of its versions are left out.
#define CHECK(member, symbol) static_assert(SameCall<decltype(Api::member), decltype(&symbol)>::value, #symbol);
#define SKIP_OPTIONAL(member, symbol)
TENON_CUDA_CALLS(CHECK, SKIP_OPTIONAL)
CHECK(mem_alloc_async, cuMemAllocAsync)
CHECK(mem_free_async, cuMemFreeAsync)
CHECK(device_uuid, cuDeviceGetUuid)
#define CHECK_NVRTC(member, symbol, parameters) static_assert(SameCall<int(*) parameters, decltype(&symbol)>::value, #symbol);
using cuda::NvrtcProgram;
TENON_NVRTC_CALLS(CHECK_NVRTC)

SAME(cu_like::kInvalidValue, CUDA_ERROR_INVALID_VALUE)
SAME(cu_like::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY)
SAME(cu_like::kNotInitialized, CUDA_ERROR_NOT_INITIALIZED)
SAME(cu_like::kStubLibrary, CUDA_ERROR_STUB_LIBRARY)
SAME(cu_like::kNoDevice, CUDA_ERROR_NO_DEVICE)
SAME(cu_like::kInvalidDevice, CUDA_ERROR_INVALID_DEVICE)
SAME(cu_like::kNotReady, CUDA_ERROR_NOT_READY)
SAME(cu_like::kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS)
SAME(cu_like::kLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
SAME(cuda::kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY)
SAME(cuda::kSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
SAME(cuda::kCompatNotSupported, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE)
SAME(cu_like::kStreamNonBlocking, CU_STREAM_NON_BLOCKING)
SAME(cu_like::kEventBlockingSync, CU_EVENT_BLOCKING_SYNC)
SAME(cu_like::kEventNoTiming, CU_EVENT_DISABLE_TIMING)
SAME(cu_like::kHostPortable, CU_MEMHOSTALLOC_PORTABLE)
SAME(cu_like::kHostMapped, CU_MEMHOSTALLOC_DEVICEMAP)
SAME(sizeof(cu_like::Uuid), sizeof(CUuuid))

SAME(cuda::kMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
SAME(cuda::kMaxBlockDimX, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)
SAME(cuda::kMaxBlockDimY, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)
SAME(cuda::kMaxBlockDimZ, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)
SAME(cuda::kMaxGridDimX, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)
SAME(cuda::kMaxGridDimY, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)
SAME(cuda::kMaxGridDimZ, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)
SAME(cuda::kMaxSharedMemoryPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)
SAME(cuda::kWarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE)
SAME(cuda::kClockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE)
SAME(cuda::kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
SAME(cuda::kIntegrated, CU_DEVICE_ATTRIBUTE_INTEGRATED)
SAME(cuda::kMemoryClockRate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)
SAME(cuda::kGlobalMemoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)
SAME(cuda::kL2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
SAME(cuda::kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
SAME(cuda::kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
SAME(cuda::kMemoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)

}  // namespace tenon::gpu::test
