// CUDA and ROCm: drivers of one make, whose functions differ in names and in a few forms.
#include <dlfcn.h>

#include <algorithm>
#include <cctype>

#include "tools/drivers/drivers.h"
#include "tools/drivers/library.h"
#include "tools/drivers/say.h"

namespace tenon::drivers {
namespace {

struct Make {
  const char *platform, *init, *count, *version, *get, *name, *memory, *bus;
  Version (*version_of)(int);
  Version need;
};

Version cuda_version(int v) { return {static_cast<uint32_t>(v / 1000), static_cast<uint32_t>(v % 1000 / 10)}; }
Version hip_version(int v) { return {static_cast<uint32_t>(v / 10000000), static_cast<uint32_t>(v / 100000 % 100)}; }
constexpr Make kCuda{"CUDA", "cuInit", "cuDeviceGetCount", "cuDriverGetVersion", "cuDeviceGet", "cuDeviceGetName", "cuDeviceTotalMem_v2", "cuDeviceGetPCIBusId", cuda_version, kNeedCuda};
constexpr Make kRocm{"ROCm", "hipInit", "hipGetDeviceCount", "hipDriverGetVersion", "hipDeviceGet", "hipDeviceGetName", "hipDeviceTotalMem", "hipDeviceGetPCIBusId", hip_version, kNeedRocm};

// The numbers are the same in both. Others are init_failed. hipInit says invalid device where there is none.
constexpr int kStub = 34, kOldDriver = 35, kNoDevice = 100, kInvalidDevice = 101, kDriverMismatch = 803;

std::string code_text(const Make& make, void* library, int code) {
  const std::string number = std::string(make.platform) + " error " + std::to_string(code);
  if (void* f = dlsym(library, "cuGetErrorName")) {
    const char* name = nullptr;
    if (reinterpret_cast<int (*)(int, const char**)>(f)(code, &name) == 0 && name != nullptr) return name + (" (" + std::to_string(code) + ")");
  } else if (void* g = dlsym(library, "hipGetErrorName")) {
    if (const char* name = reinterpret_cast<const char* (*)(int)>(g)(code)) return name + (" (" + std::to_string(code) + ")");
  }
  return number;
}

void say_code(const Make& make, void* library, const std::string& library_name, const char* function, int code) {
  const std::string words = code_text(make, library, code), why = std::string(function) + " gave " + words;
  const JsonRow more = JsonRow().add("code", words);
  if (code == kNoDevice || code == kInvalidDevice) return fault("no_device", why, more);
  if (code == kStub) return fault("library_missing", library_name + " is a stub to build with, not a driver", JsonRow().add("library", library_name));
  if (code == kOldDriver) return fault("driver_too_old", why, JsonRow().add("have", "unknown").add("need", text(make.need)));
  if (code == kDriverMismatch) return fault("abi_mismatch", why + ": the library and the kernel's driver are of different versions", more);
  fault("init_failed", why, more);
}

// Bus addresses as the kernel writes them: lower case, a domain of four digits.
std::string bus_text(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text.size() == 16 ? text.substr(4) : text;
}

void say_device(const Make& make, void* library, int index, const std::string& version) {
  int handle = index;
  if (void* f = dlsym(library, make.get)) reinterpret_cast<int (*)(int*, int)>(f)(&handle, index);
  char name[256] = {}, bus[64] = {};
  size_t bytes = 0;
  if (void* f = dlsym(library, make.name)) reinterpret_cast<int (*)(char*, int, int)>(f)(name, sizeof name - 1, handle);
  if (void* f = dlsym(library, make.memory)) reinterpret_cast<int (*)(size_t*, int)>(f)(&bytes, handle);
  if (void* f = dlsym(library, make.bus)) reinterpret_cast<int (*)(char*, int, int)>(f)(bus, sizeof bus - 1, handle);
  device({make.platform, name, "gpu", version, version, bus_text(bus), bytes});
}

void try_make(const Make& make, const Names& names) {
  stage("load");
  void* library = open_library(names);
  if (library == nullptr) return;
  const auto init = reinterpret_cast<int (*)(unsigned)>(symbol(library, make.init, names[0]));
  const auto count = reinterpret_cast<int (*)(int*)>(symbol(library, make.count, names[0]));
  const auto version = reinterpret_cast<int (*)(int*)>(symbol(library, make.version, names[0]));
  if (init == nullptr || count == nullptr || version == nullptr) return;
  stage("start");
  int number = 0, n = 0;
  const bool known = version(&number) == 0 && number > 0;
  const Version have = known ? make.version_of(number) : Version{};
  if (known && have < make.need)
    return fault("driver_too_old", std::string("the driver serves ") + make.platform + " " + text(have), JsonRow().add("have", text(have)).add("need", text(make.need)));
  if (const int code = init(0)) return say_code(make, library, names[0], make.init, code);
  stage("devices");
  if (const int code = count(&n)) return say_code(make, library, names[0], make.count, code);
  for (int i = 0; i < n; ++i) say_device(make, library, i, known ? text(have) : "unknown");
  if (n == 0) fault("no_device", "it offers no device");
}

}  // namespace

void try_cuda(const Names& names) { try_make(kCuda, names); }
void try_rocm(const Names& names) { try_make(kRocm, names); }

}  // namespace tenon::drivers
