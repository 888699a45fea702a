// Compiled where HIP's headers are: tenon_hip_abi.h says what hip_runtime_api.h and hiprtc.h say. Nothing of it runs.
#define __HIP_PLATFORM_AMD__ 1
#define __HIP_DISABLE_CPP_FUNCTIONS__ 1  // no overloads: their addresses are wanted
#include <hip/hip_runtime_api.h>
#if __has_include(<hip/hiprtc.h>)
#include <hip/hiprtc.h>
#define TENON_HAS_HIPRTC 1
#endif

#include "backends/rocm/tenon_hip_abi.h"
#include "tests/cuda/abi_shape.h"

#define SAME(ours, theirs) static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs));

namespace tenon::gpu::test {
using cu_like::Api;

#define CHECK(member, symbol) static_assert(SameCall<decltype(Api::member), decltype(&symbol)>::value, #symbol);
#define SKIP_OPTIONAL(member, symbol)
TENON_HIP_CALLS(CHECK, SKIP_OPTIONAL)
// In C++ this name has overloads; the cast compiles for the exported function alone.
static_assert(SameCall<decltype(Api::mem_alloc_async), decltype(static_cast<hipError_t (*)(void**, size_t, hipStream_t)>(&hipMallocAsync))>::value);
CHECK(mem_free_async, hipFreeAsync)
CHECK(device_uuid, hipDeviceGetUuid)
#if defined(TENON_HAS_HIPRTC)
#define CHECK_RTC(member, symbol, parameters) static_assert(SameCall<int(*) parameters, decltype(&symbol)>::value, #symbol);
TENON_HIPRTC_CALLS(CHECK_RTC)
#endif

SAME(cu_like::kInvalidValue, hipErrorInvalidValue)
SAME(cu_like::kOutOfMemory, hipErrorOutOfMemory)
SAME(cu_like::kNotInitialized, hipErrorNotInitialized)
SAME(cu_like::kInsufficientDriver, hipErrorInsufficientDriver)
SAME(cu_like::kNoDevice, hipErrorNoDevice)
SAME(cu_like::kInvalidDevice, hipErrorInvalidDevice)
SAME(cu_like::kNotReady, hipErrorNotReady)
SAME(cu_like::kIllegalAddress, hipErrorIllegalAddress)
SAME(cu_like::kLaunchOutOfResources, hipErrorLaunchOutOfResources)
SAME(cu_like::kStreamNonBlocking, hipStreamNonBlocking)
SAME(cu_like::kEventBlockingSync, hipEventBlockingSync)
SAME(cu_like::kEventNoTiming, hipEventDisableTiming)
SAME(cu_like::kHostPortable, hipHostMallocPortable)
SAME(cu_like::kHostMapped, hipHostMallocMapped)
SAME(sizeof(cu_like::Uuid), sizeof(hipUUID))
static_assert(sizeof(hipDeviceProp_t) <= rocm::kPropertiesBytes && offsetof(hipDeviceProp_t, gcnArchName) >= rocm::kNameBytes && sizeof(hipDeviceProp_t::name) == rocm::kNameBytes);

SAME(rocm::kClockRate, hipDeviceAttributeClockRate)
SAME(rocm::kIntegrated, hipDeviceAttributeIntegrated)
SAME(rocm::kL2CacheSize, hipDeviceAttributeL2CacheSize)
SAME(rocm::kComputeCapabilityMajor, hipDeviceAttributeComputeCapabilityMajor)
SAME(rocm::kComputeCapabilityMinor, hipDeviceAttributeComputeCapabilityMinor)
SAME(rocm::kMaxBlockDimX, hipDeviceAttributeMaxBlockDimX)
SAME(rocm::kMaxBlockDimY, hipDeviceAttributeMaxBlockDimY)
SAME(rocm::kMaxBlockDimZ, hipDeviceAttributeMaxBlockDimZ)
SAME(rocm::kMaxGridDimX, hipDeviceAttributeMaxGridDimX)
SAME(rocm::kMaxGridDimY, hipDeviceAttributeMaxGridDimY)
SAME(rocm::kMaxGridDimZ, hipDeviceAttributeMaxGridDimZ)
SAME(rocm::kMaxThreadsPerBlock, hipDeviceAttributeMaxThreadsPerBlock)
SAME(rocm::kMemoryBusWidth, hipDeviceAttributeMemoryBusWidth)
SAME(rocm::kMemoryClockRate, hipDeviceAttributeMemoryClockRate)
SAME(rocm::kMultiprocessorCount, hipDeviceAttributeMultiprocessorCount)
SAME(rocm::kMaxSharedMemoryPerBlock, hipDeviceAttributeMaxSharedMemoryPerBlock)
SAME(rocm::kWarpSize, hipDeviceAttributeWarpSize)
SAME(rocm::kMemoryPoolsSupported, hipDeviceAttributeMemoryPoolsSupported)

}  // namespace tenon::gpu::test
