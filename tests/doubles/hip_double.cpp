// A stand-in for libamdhip64: the part of the HIP runtime that the rocm backend uses, on the processor.
#include <algorithm>

#include "tests/doubles/export.h"

using namespace tenon_double;
namespace {

struct Uuid { unsigned char bytes[16]; };
std::atomic<bool> started{false};
thread_local int current = 0;

std::string arch() { return settings().arch.empty() ? "gfx90a:sramecc+:xnack-" : settings().arch; }
int devices() { return std::min(settings().devices, kMostDevices); }
// Wave64 up to gfx9, wave32 after.
uint32_t warp() { return settings().warp != 0 ? settings().warp : arch().rfind("gfx9", 0) == 0 ? 64 : 32; }
bool good_device(int device) { return device >= 0 && device < devices(); }
constexpr uint64_t kMostItems = 0xFFFFFFFFu;

#define TENON_HERE \
  const int device = current; \
  if (!good_device(device)) return 100; \
  if (const int code = lost(device)) return code

}  // namespace

TENON_DOUBLE_API int hipInit(unsigned flags) {
  if (flags != 0) return 1;
  if (settings().init_code != 0) return settings().init_code;
  started = true;
  return devices() == 0 ? 100 : 0;
}
TENON_DOUBLE_API int hipDriverGetVersion(int* out) { return *out = 60241132, 0; }
TENON_DOUBLE_API const char* hipGetErrorName(int code) {
  const ErrorName* n = error_name(code);
  return n != nullptr ? n->hip : "hipErrorUnknown";
}
TENON_DOUBLE_API const char* hipGetErrorString(int code) {
  const ErrorName* n = error_name(code);
  return n != nullptr ? n->text : "unknown error";
}
TENON_DOUBLE_API int hipGetDeviceCount(int* out) { return *out = devices(), *out == 0 ? 100 : 0; }
TENON_DOUBLE_API int hipDeviceGet(int* out, int ordinal) { return good_device(ordinal) ? (*out = ordinal, 0) : 101; }
TENON_DOUBLE_API int hipSetDevice(int device) { return good_device(device) ? (current = device, 0) : 101; }
TENON_DOUBLE_API int hipGetDevice(int* out) { return *out = current, 0; }
TENON_DOUBLE_API int hipDeviceGetName(char* out, int size, int device) {
  if (!good_device(device)) return 101;
  std::snprintf(out, static_cast<size_t>(size), "double of a HIP device (%s)", arch().c_str());
  return 0;
}
TENON_DOUBLE_API int hipDeviceGetUuid(Uuid* out, int device) {
  if (!good_device(device)) return 101;
  std::memcpy(out->bytes, "tenon double h00", 16);
  out->bytes[15] = static_cast<unsigned char>('0' + device);
  return 0;
}
TENON_DOUBLE_API int hipDeviceGetPCIBusId(char* out, int size, int device) {
  if (!good_device(device)) return 101;
  std::snprintf(out, static_cast<size_t>(size), "0000:%02x:00.0", 0x50 + device);
  return 0;
}
TENON_DOUBLE_API int hipDeviceTotalMem(size_t* out, int device) { return good_device(device) ? (*out = settings().memory_bytes, 0) : 101; }
TENON_DOUBLE_API int hipDeviceGetAttribute(int* out, int attribute, int device) {
  if (!good_device(device)) return 101;
  switch (attribute) {
    case 5: case 60: *out = 1000000; break;       // kHz
    case 16: *out = 0; break;
    case 19: *out = 1 << 20; break;
    case 23: *out = 9; break;
    case 61: *out = 0; break;
    case 26: case 27: case 28: case 56: *out = 1024; break;
    case 29: *out = 0x7FFFFFFF; break;
    case 30: case 31: *out = 65536; break;
    case 59: *out = 256; break;
    case 63: *out = 4; break;
    case 74: *out = 65536; break;
    case 87: *out = static_cast<int>(warp()); break;
    case 88: *out = settings().pools; break;
    default: *out = 0; return 1;
  }
  return 0;
}
// HIP 6's layout: 1472 bytes, the architecture at byte 1160.
TENON_DOUBLE_API int hipGetDevicePropertiesR0600(void* out, int device) {
  if (!good_device(device)) return 101;
  char* properties = static_cast<char*>(out);
  std::memset(properties, 0, 1472);
  hipDeviceGetName(properties, 256, device);
  std::snprintf(properties + 1160, 256, "%s", arch().c_str());
  return 0;
}
TENON_DOUBLE_API int hipDeviceGetStreamPriorityRange(int* least, int* greatest) { return *least = 1, *greatest = -1, 0; }

TENON_DOUBLE_API int hipMemGetInfo(size_t* free_bytes, size_t* total) {
  TENON_HERE;
  *total = settings().memory_bytes;
  *free_bytes = *total - std::min<uint64_t>(*total, used_bytes(device));
  return 0;
}
TENON_DOUBLE_API int hipMalloc(uint64_t* out, size_t bytes) {
  TENON_HERE;
  return allocate(device, bytes, false, out);
}
TENON_DOUBLE_API int hipFree(uint64_t base) {
  TENON_HERE;
  return release(base, false);
}
TENON_DOUBLE_API int hipMallocAsync(uint64_t* out, size_t bytes, void* stream) {
  TENON_HERE;
  if (!settings().pools) return 801;
  return streams().get(stream) ? allocate(device, bytes, false, out) : 400;
}
TENON_DOUBLE_API int hipFreeAsync(uint64_t base, void* stream) {
  TENON_HERE;
  return settings().pools ? free_after(base, stream) : 801;
}
TENON_DOUBLE_API int hipHostMalloc(void** out, size_t bytes, unsigned) {
  TENON_HERE;
  uint64_t base = 0;
  const int code = allocate(device, bytes, true, &base);
  *out = reinterpret_cast<void*>(base);
  return code;
}
TENON_DOUBLE_API int hipHostFree(void* host) { return release(reinterpret_cast<uint64_t>(host), true); }
TENON_DOUBLE_API int hipHostGetDevicePointer(uint64_t* out, void* host, unsigned) {
  TENON_HERE;
  return is_pinned(host, 1) ? (*out = reinterpret_cast<uint64_t>(host), 0) : 1;
}
TENON_DOUBLE_API int hipMemcpyHtoDAsync(uint64_t dst, const void* src, size_t bytes, void* stream) {
  TENON_HERE;
  return copy_on(stream, reinterpret_cast<void*>(dst), src, bytes, false, true);
}
TENON_DOUBLE_API int hipMemcpyDtoHAsync(void* dst, uint64_t src, size_t bytes, void* stream) {
  TENON_HERE;
  return copy_on(stream, dst, reinterpret_cast<void*>(src), bytes, true, false);
}
TENON_DOUBLE_API int hipMemcpyDtoDAsync(uint64_t dst, uint64_t src, size_t bytes, void* stream) {
  TENON_HERE;
  return copy_on(stream, reinterpret_cast<void*>(dst), reinterpret_cast<void*>(src), bytes, false, false);
}
TENON_DOUBLE_API int hipMemsetD32Async(uint64_t dst, int value, size_t words, void* stream) {
  TENON_HERE;
  return set_words_on(stream, dst, static_cast<unsigned>(value), words);
}

TENON_DOUBLE_API int hipStreamCreateWithPriority(void** out, unsigned, int) {
  TENON_HERE;
  return stream_create(device, out);
}
TENON_DOUBLE_API int hipStreamDestroy(void* stream) { return stream_destroy(stream); }
TENON_DOUBLE_API int hipStreamSynchronize(void* stream) { return stream_sync(stream); }
TENON_DOUBLE_API int hipStreamWaitEvent(void* stream, void* event, unsigned) {
  TENON_HERE;
  return stream_wait_event(stream, event);
}
TENON_DOUBLE_API int hipEventCreateWithFlags(void** out, unsigned) {
  TENON_HERE;
  return event_create(device, out);
}
TENON_DOUBLE_API int hipEventDestroy(void* event) { return event_destroy(event); }
TENON_DOUBLE_API int hipEventRecord(void* event, void* stream) {
  TENON_HERE;
  return event_record(event, stream);
}
TENON_DOUBLE_API int hipEventQuery(void* event) { return event_query(event); }
TENON_DOUBLE_API int hipEventSynchronize(void* event) { return event_sync(event); }
TENON_DOUBLE_API int hipModuleLoadData(void** out, const void* image) {
  TENON_HERE;
  return module_load(device, arch(), out, image);
}
TENON_DOUBLE_API int hipModuleUnload(void* module) { return module_unload(module); }
TENON_DOUBLE_API int hipModuleGetFunction(void** out, void* module, const char* name) { return module_function(out, module, name); }
TENON_DOUBLE_API int hipModuleLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned, void* stream, void** arguments,
                                           void**) {
  TENON_HERE;
  return launch_on(device, function, stream, {gx, gy, gz}, {bx, by, bz}, arguments, warp(), kMostItems);
}
