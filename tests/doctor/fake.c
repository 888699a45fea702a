/* fake.c - drivers that misbehave on demand, compiled by scenarios_test.py; never installed.
 *
 *   cc -shared -fPIC -DCUDA -DINIT=100 fake.c -o libcuda.so.1      a library whose cuInit finds no device
 *   cc -shared -fPIC -DVULKAN -DAT_INSTANCE='crash()' fake.c       a Vulkan driver that crashes when it is started
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#ifndef AT_LOAD
#define AT_LOAD (void)0
#endif
#ifndef AT_INSTANCE
#define AT_INSTANCE (void)0
#endif
#ifndef INIT
#define INIT 0
#endif
#ifndef VERSION
#define VERSION 12020
#endif
#ifndef COUNT
#define COUNT 1
#endif

static inline void crash(void) { *(volatile int*)8 = 1; }
static inline void hang(void) {
  for (;;) pause();
}
static inline void leave(void) { _exit(0); }

/* Shows a test that the library was opened at all. */
__attribute__((constructor)) static void load(void) {
  const char* log = getenv("FAKE_DRIVER_LOG");
  if (log != NULL && access(log, W_OK) == 0 && truncate(log, 1) != 0) abort();
  AT_LOAD;
}

#ifdef CUDA
EXPORT int cuInit(unsigned flags) { return flags == 0 ? INIT : 1; }
EXPORT int cuDriverGetVersion(int* out) { return *out = VERSION, 0; }
EXPORT int cuDeviceGetCount(int* out) { return *out = COUNT, 0; }
EXPORT int cuDeviceGet(int* out, int index) { return *out = index, 0; }
EXPORT int cuDeviceGetName(char* out, int size, int device) { return (void)device, strncpy(out, "Fake GPU", (size_t)size), 0; }
EXPORT int cuDeviceTotalMem_v2(size_t* out, int device) { return (void)device, *out = (size_t)192 << 30, 0; }
EXPORT int cuDeviceGetPCIBusId(char* out, int size, int device) { return (void)device, strncpy(out, "0000:65:00.0", (size_t)size), 0; }
EXPORT int cuGetErrorName(int code, const char** out) { return *out = code == 100 ? "CUDA_ERROR_NO_DEVICE" : code == 803 ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" : "CUDA_ERROR_UNKNOWN", 0; }
#endif

#ifdef VULKAN
static int32_t version(uint32_t* out) { return *out = 1u << 22 | 3u << 12, 0; }
static int32_t create(const void* info, const void* allocator, void** out) {
  (void)info, (void)allocator;
  AT_INSTANCE;
  return *out = (void*)16, INIT;
}
static int32_t list(void* instance, uint32_t* count, void** out) {
  (void)instance;
  if (out != NULL && COUNT > 0) out[0] = (void*)32;
  return *count = COUNT, 0;
}
static void properties(void* device, uint32_t* out) {
  (void)device;
  out[0] = VERSION; /* VkPhysicalDeviceProperties: apiVersion, driverVersion, vendorID, deviceID, deviceType, deviceName */
  out[4] = 2;
  strcpy((char*)(out + 5), "Fake GPU");
}
typedef void (*function)(void);
EXPORT function vk_icdGetInstanceProcAddr(void* instance, const char* name) {
  (void)instance;
  if (strcmp(name, "vkEnumerateInstanceVersion") == 0) return (function)version;
  if (strcmp(name, "vkCreateInstance") == 0) return (function)create;
  if (strcmp(name, "vkEnumeratePhysicalDevices") == 0) return (function)list;
  if (strcmp(name, "vkGetPhysicalDeviceProperties") == 0) return (function)properties;
  return NULL;
}
#endif

#ifdef OPENCL
EXPORT void* clGetExtensionFunctionAddress(const char* name) { return (void)name, NULL; }
#endif
