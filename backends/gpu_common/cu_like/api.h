// backends/gpu_common/cu_like/api.h - the calls that the CUDA driver and the HIP runtime have in common, under neutral names.
//
// HIP copies CUDA's driver API call for call: other names, the same arguments in the same order, the same numbers for errors.
// So one host source serves both through this table; backends/cuda and backends/rocm only say which symbol fills which
// member, and a test compares each with the vendor's own header. Device pointers are uint64_t here (CUdeviceptr, void*).
#pragma once
#include <cstddef>
#include <cstdint>

namespace tenon::gpu::cu_like {

struct Uuid { unsigned char bytes[16]; };
using Handle = struct OpaqueHandle*;  // context, stream, event, module or function; each API's own

// X(member, parameters). All return the API's error number, 0 = good.
#define CU_LIKE_CALLS(X) \
  X(init, (unsigned flags)) \
  X(driver_version, (int* out)) \
  X(device_count, (int* out)) \
  X(device_get, (int* out, int ordinal)) \
  X(device_name, (char* out, int size, int device)) \
  X(device_uuid, (Uuid * out, int device)) \
  X(device_pci, (char* out, int size, int device)) \
  X(device_memory, (size_t * out, int device)) \
  X(device_attribute, (int* out, int attribute, int device)) \
  X(priority_range, (int* least, int* greatest)) \
  X(mem_info, (size_t * free_bytes, size_t* total)) \
  X(mem_alloc, (uint64_t* out, size_t bytes)) \
  X(mem_free, (uint64_t pointer)) \
  X(mem_alloc_async, (uint64_t* out, size_t bytes, Handle stream)) \
  X(mem_free_async, (uint64_t pointer, Handle stream)) \
  X(host_alloc, (void** out, size_t bytes, unsigned flags)) \
  X(host_free, (void* pointer)) \
  X(host_device_pointer, (uint64_t* out, void* host, unsigned flags)) \
  X(copy_to_device, (uint64_t dst, const void* src, size_t bytes, Handle stream)) \
  X(copy_to_host, (void* dst, uint64_t src, size_t bytes, Handle stream)) \
  X(copy_on_device, (uint64_t dst, uint64_t src, size_t bytes, Handle stream)) \
  X(set_words, (uint64_t dst, unsigned value, size_t words, Handle stream)) \
  X(stream_create, (Handle * out, unsigned flags, int priority)) \
  X(stream_destroy, (Handle stream)) \
  X(stream_sync, (Handle stream)) \
  X(stream_wait_event, (Handle stream, Handle event, unsigned flags)) \
  X(event_create, (Handle * out, unsigned flags)) \
  X(event_destroy, (Handle event)) \
  X(event_record, (Handle event, Handle stream)) \
  X(event_query, (Handle event)) \
  X(event_sync, (Handle event)) \
  X(module_load, (Handle * out, const void* image)) \
  X(module_unload, (Handle module)) \
  X(module_function, (Handle * out, Handle module, const char* name)) \
  X(launch, (Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned local_bytes, Handle stream, void** arguments, \
             void** extra))

// Where the two differ. Absent members are NULL.
#define CU_LIKE_CUDA_CALLS(X) \
  X(error_name, (int code, const char** out)) \
  X(error_text, (int code, const char** out)) \
  X(context_retain, (Handle * out, int device)) \
  X(context_release, (int device)) \
  X(context_push, (Handle context)) \
  X(context_pop, (Handle * out))
#define CU_LIKE_HIP_CALLS(X) \
  X(set_device, (int device)) \
  X(get_device, (int* out)) \
  X(device_properties, (void* out, int device))

struct Api {
#define CU_LIKE_MEMBER(member, parameters) int(*member) parameters = nullptr;
  CU_LIKE_CALLS(CU_LIKE_MEMBER)
  CU_LIKE_CUDA_CALLS(CU_LIKE_MEMBER)
  CU_LIKE_HIP_CALLS(CU_LIKE_MEMBER)
#undef CU_LIKE_MEMBER
  const char* (*hip_error_name)(int code) = nullptr;  // HIP returns these texts
  const char* (*hip_error_text)(int code) = nullptr;
  // A library that stands in for a driver says so by this symbol, and every report of its devices repeats it.
  const char* stand_in = nullptr;
};

// One line of a backend's table: which exported symbol fills which member.
struct Symbol { const char* name; size_t offset; bool optional; };
#define CU_LIKE_SYMBOL(member, symbol) {#symbol, offsetof(::tenon::gpu::cu_like::Api, member), false},
#define CU_LIKE_OPTIONAL(member, symbol) {#symbol, offsetof(::tenon::gpu::cu_like::Api, member), true},

// Numbers that both APIs use alike.
enum Code : int {
  kGood = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kStubLibrary = 34, kInsufficientDriver = 35, kNoDevice = 100, kInvalidDevice = 101,
  kNotReady = 600, kIllegalAddress = 700, kLaunchOutOfResources = 701,
};
enum : unsigned { kStreamNonBlocking = 1, kEventBlockingSync = 1, kEventNoTiming = 2, kHostPortable = 1, kHostMapped = 2 };

// Numbers of device attributes, which differ.
struct Attributes {
  int warp_size, max_threads, max_group[3], max_groups[3], local_bytes, multiprocessors, clock_khz, memory_clock_khz, memory_bus_bits, l2_bytes, integrated,
      major, minor, memory_pools;
};

}  // namespace tenon::gpu::cu_like
