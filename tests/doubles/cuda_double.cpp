// A stand-in for libcuda.so.1: the part of the driver API that the cuda backend uses, on the processor.
#include <cstdlib>
#include <vector>

#include "tests/doubles/export.h"

using namespace tenon_double;
namespace {

struct Uuid { unsigned char bytes[16]; };
bool started = false;
std::atomic<int> retained[kMostDevices];
thread_local std::vector<int> current;  // the stack of contexts

// A context's handle is its device's number, far from any pointer.
void* context_of(int device) { return reinterpret_cast<void*>(uintptr_t{0xC0DA00} + static_cast<uintptr_t>(device)); }
int device_of(void* context) { return static_cast<int>(reinterpret_cast<uintptr_t>(context) - 0xC0DA00); }

std::string arch() { return settings().arch.empty() ? "sm_90" : settings().arch; }
int devices() { return std::min(settings().devices, kMostDevices); }
uint32_t warp() { return settings().warp != 0 ? settings().warp : 32; }
bool good_device(int device) { return device >= 0 && device < devices(); }

// The current device, or the error that every call gives without one.
int here(int* device) {
  if (!started) return 3;
  if (current.empty() || retained[current.back()] == 0) return 201;
  *device = current.back();
  return lost(*device);
}
#define TENON_HERE \
  int device = 0; \
  if (const int code = here(&device)) return code

}  // namespace

TENON_DOUBLE_API int cuInit(unsigned flags) {
  if (flags != 0) return 1;
  if (settings().init_code != 0) return settings().init_code;
  if (devices() == 0) return 100;
  started = true;
  return 0;
}
TENON_DOUBLE_API int cuDriverGetVersion(int* out) { return *out = 13000, 0; }
TENON_DOUBLE_API int cuGetErrorName(int code, const char** out) {
  const ErrorName* n = error_name(code);
  *out = n != nullptr ? n->cuda : nullptr;
  return n != nullptr ? 0 : 1;
}
TENON_DOUBLE_API int cuGetErrorString(int code, const char** out) {
  const ErrorName* n = error_name(code);
  *out = n != nullptr ? n->text : nullptr;
  return n != nullptr ? 0 : 1;
}
TENON_DOUBLE_API int cuDeviceGetCount(int* out) { return started ? (*out = devices(), 0) : 3; }
TENON_DOUBLE_API int cuDeviceGet(int* out, int ordinal) {
  if (!started) return 3;
  return good_device(ordinal) ? (*out = ordinal, 0) : 101;
}
TENON_DOUBLE_API int cuDeviceGetName(char* out, int size, int device) {
  if (!good_device(device)) return 101;
  std::snprintf(out, static_cast<size_t>(size), "double of a CUDA device (%s)", arch().c_str());
  return 0;
}
TENON_DOUBLE_API int cuDeviceGetUuid_v2(Uuid* out, int device) {
  if (!good_device(device)) return 101;
  std::memcpy(out->bytes, "tenon double c00", 16);
  out->bytes[15] = static_cast<unsigned char>('0' + device);
  return 0;
}
TENON_DOUBLE_API int cuDeviceGetPCIBusId(char* out, int size, int device) {
  if (!good_device(device)) return 101;
  std::snprintf(out, static_cast<size_t>(size), "0000:%02x:00.0", 0x40 + device);
  return 0;
}
TENON_DOUBLE_API int cuDeviceTotalMem_v2(size_t* out, int device) { return good_device(device) ? (*out = settings().memory_bytes, 0) : 101; }
TENON_DOUBLE_API int cuDeviceGetAttribute(int* out, int attribute, int device) {
  if (!good_device(device)) return 101;
  const int capability = std::atoi(arch().c_str() + 3);
  switch (attribute) {
    case 1: case 2: case 3: *out = 1024; break;   // threads of a block, and along x and y
    case 4: *out = 64; break;
    case 5: *out = 0x7FFFFFFF; break;
    case 6: case 7: *out = 65535; break;
    case 8: *out = 49152; break;                  // local memory
    case 10: *out = static_cast<int>(warp()); break;
    case 13: *out = 1000000; break;               // kHz
    case 16: *out = 4; break;                     // multiprocessors
    case 18: *out = 0; break;
    case 36: *out = 1000000; break;
    case 37: *out = 256; break;
    case 38: *out = 1 << 20; break;
    case 75: *out = capability / 10; break;
    case 76: *out = capability % 10; break;
    case 115: *out = settings().pools; break;
    default: *out = 0; return 1;
  }
  return 0;
}

TENON_DOUBLE_API int cuDevicePrimaryCtxRetain(void** out, int device) {
  if (!good_device(device)) return 101;
  retained[device]++, counters().contexts++;
  *out = context_of(device);
  return 0;
}
TENON_DOUBLE_API int cuDevicePrimaryCtxRelease_v2(int device) {
  if (!good_device(device) || retained[device] == 0) return 201;
  retained[device]--, counters().contexts--;
  return 0;
}
TENON_DOUBLE_API int cuCtxPushCurrent_v2(void* context) {
  const int device = device_of(context);
  if (!good_device(device)) return 201;
  current.push_back(device);
  return 0;
}
TENON_DOUBLE_API int cuCtxPopCurrent_v2(void** out) {
  if (current.empty()) return 201;
  *out = context_of(current.back());
  current.pop_back();
  return 0;
}
TENON_DOUBLE_API int cuCtxGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -5, 0; }

TENON_DOUBLE_API int cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  TENON_HERE;
  *total = settings().memory_bytes;
  *free_bytes = *total - std::min<uint64_t>(*total, used_bytes(device));
  return 0;
}
TENON_DOUBLE_API int cuMemAlloc_v2(uint64_t* out, size_t bytes) {
  TENON_HERE;
  return allocate(device, bytes, false, out);
}
TENON_DOUBLE_API int cuMemFree_v2(uint64_t base) {
  TENON_HERE;
  return release(base, false);
}
TENON_DOUBLE_API int cuMemAllocAsync(uint64_t* out, size_t bytes, void* stream) {
  TENON_HERE;
  if (!settings().pools) return 801;
  return streams().get(stream) ? allocate(device, bytes, false, out) : 400;
}
TENON_DOUBLE_API int cuMemFreeAsync(uint64_t base, void* stream) {
  TENON_HERE;
  return settings().pools ? free_after(base, stream) : 801;
}
TENON_DOUBLE_API int cuMemHostAlloc(void** out, size_t bytes, unsigned) {
  TENON_HERE;
  uint64_t base = 0;
  const int code = allocate(device, bytes, true, &base);
  *out = reinterpret_cast<void*>(base);
  return code;
}
TENON_DOUBLE_API int cuMemFreeHost(void* host) { return release(reinterpret_cast<uint64_t>(host), true); }
TENON_DOUBLE_API int cuMemHostGetDevicePointer_v2(uint64_t* out, void* host, unsigned) {
  TENON_HERE;
  return is_pinned(host, 1) ? (*out = reinterpret_cast<uint64_t>(host), 0) : 1;
}
TENON_DOUBLE_API int cuMemcpyHtoDAsync_v2(uint64_t dst, const void* src, size_t bytes, void* stream) {
  TENON_HERE;
  return copy_on(stream, reinterpret_cast<void*>(dst), src, bytes, false, true);
}
TENON_DOUBLE_API int cuMemcpyDtoHAsync_v2(void* dst, uint64_t src, size_t bytes, void* stream) {
  TENON_HERE;
  return copy_on(stream, dst, reinterpret_cast<void*>(src), bytes, true, false);
}
TENON_DOUBLE_API int cuMemcpyDtoDAsync_v2(uint64_t dst, uint64_t src, size_t bytes, void* stream) {
  TENON_HERE;
  return copy_on(stream, reinterpret_cast<void*>(dst), reinterpret_cast<void*>(src), bytes, false, false);
}
TENON_DOUBLE_API int cuMemsetD32Async(uint64_t dst, unsigned value, size_t words, void* stream) {
  TENON_HERE;
  return set_words_on(stream, dst, value, words);
}

TENON_DOUBLE_API int cuStreamCreateWithPriority(void** out, unsigned, int) {
  TENON_HERE;
  return stream_create(device, out);
}
TENON_DOUBLE_API int cuStreamDestroy_v2(void* stream) { return stream_destroy(stream); }
TENON_DOUBLE_API int cuStreamSynchronize(void* stream) { return stream_sync(stream); }
TENON_DOUBLE_API int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  TENON_HERE;
  return stream_wait_event(stream, event);
}
TENON_DOUBLE_API int cuEventCreate(void** out, unsigned) {
  TENON_HERE;
  return event_create(device, out);
}
TENON_DOUBLE_API int cuEventDestroy_v2(void* event) { return event_destroy(event); }
TENON_DOUBLE_API int cuEventRecord(void* event, void* stream) {
  TENON_HERE;
  return event_record(event, stream);
}
TENON_DOUBLE_API int cuEventQuery(void* event) { return event_query(event); }
TENON_DOUBLE_API int cuEventSynchronize(void* event) { return event_sync(event); }
TENON_DOUBLE_API int cuModuleLoadData(void** out, const void* image) {
  TENON_HERE;
  return module_load(device, arch(), out, image);
}
TENON_DOUBLE_API int cuModuleUnload(void* module) { return module_unload(module); }
TENON_DOUBLE_API int cuModuleGetFunction(void** out, void* module, const char* name) { return module_function(out, module, name); }
TENON_DOUBLE_API int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned, void* stream, void** arguments, void**) {
  TENON_HERE;
  return launch_on(device, function, stream, {gx, gy, gz}, {bx, by, bz}, arguments, warp(), 0);
}
