// OpenCL: one driver, asked through the table that cl_khr_icd defines, without the ICD loader between.
#include <cstdio>
#include <cstring>

#include "tools/drivers/drivers.h"
#include "tools/drivers/library.h"
#include "tools/drivers/say.h"

namespace tenon::drivers {
namespace {

// The first entries of the dispatch table (cl_icd.h); every object begins with a pointer to it.
struct Table {
  int32_t (*platforms)(uint32_t, void**, uint32_t*);
  int32_t (*platform_info)(void*, uint32_t, size_t, void*, size_t*);
  int32_t (*device_ids)(void*, uint64_t, uint32_t, void**, uint32_t*);
  int32_t (*device_info)(void*, uint32_t, size_t, void*, size_t*);
};
const Table& table_of(void* object) { return **static_cast<const Table**>(object); }

constexpr uint32_t kPlatformVersion = 0x0901, kPlatformName = 0x0902;
constexpr uint32_t kType = 0x1000, kVendorId = 0x1001, kMemory = 0x101F, kName = 0x102B, kDriver = 0x102D, kVersion = 0x102F, kPci = 0x410F;
constexpr int32_t kDeviceNotFound = -1, kPlatformNotFound = -1001;
constexpr uint64_t kAllTypes = 0xFFFFFFFF;
constexpr uint32_t kMost = 64;

template <class Info>
std::string words(Info info, void* object, uint32_t what) {
  char text[1024] = {};
  return info(object, what, sizeof text - 1, text, nullptr) == 0 ? std::string(text) : std::string();
}

template <class T>
T number(void* device, uint32_t what) {
  T value{};
  return table_of(device).device_info(device, what, sizeof value, &value, nullptr) == 0 ? value : T{};
}

// "OpenCL 3.0 PoCL 3.1" -> 3.0
Version version_in(const std::string& text) {
  Version v;
  return std::sscanf(text.c_str(), "OpenCL %u.%u", &v.major, &v.minor) == 2 ? v : Version{};
}

std::string code_text(int32_t code) { return "OpenCL error " + std::to_string(code); }

const char* type_name(uint64_t type) { return type & 4 ? "gpu" : type & 2 ? "cpu" : type & 8 ? "accelerator" : "other"; }

void say_device(void* d, const std::string& platform) {
  const uint64_t type = number<uint64_t>(d, kType);
  const auto info = table_of(d).device_info;
  DeviceFacts facts{platform, words(info, d, kName), type_name(type), text(version_in(words(info, d, kVersion))), words(info, d, kDriver), "", number<uint64_t>(d, kMemory)};
  facts.software = std::strcmp(facts.type.c_str(), "cpu") == 0;
  facts.vendor_id = number<uint32_t>(d, kVendorId);
  uint32_t bus[4] = {};
  if (info(d, kPci, sizeof bus, bus, nullptr) == 0) {
    char address[40];
    std::snprintf(address, sizeof address, "%04x:%02x:%02x.%x", bus[0], bus[1], bus[2], bus[3]);
    facts.pci = address;
  }
  device(facts);
}

// How many devices were said.
uint32_t say_platform(void* platform) {
  const Table& table = table_of(platform);
  const std::string name = words(table.platform_info, platform, kPlatformName), version = words(table.platform_info, platform, kPlatformVersion);
  if (version_in(version) < kNeedOpenCL) {
    fault("driver_too_old", name + " offers " + version, JsonRow().add("have", text(version_in(version))).add("need", text(kNeedOpenCL)));
    return 1;
  }
  stage("devices");
  void* devices[kMost] = {};
  uint32_t n = 0;
  const int32_t code = table.device_ids(platform, kAllTypes, kMost, devices, &n);
  if (code == kDeviceNotFound) return 0;
  if (code != 0) return fault("init_failed", name + " cannot list its devices: " + code_text(code), JsonRow().add("code", code_text(code))), 1;
  for (uint32_t i = 0; i < n && i < kMost; ++i) say_device(devices[i], name);
  return n;
}

}  // namespace

void try_opencl(const Names& names) {
  stage("load");
  void* library = open_library(names);
  if (library == nullptr) return;
  using Lookup = void* (*)(const char*);
  const auto lookup = reinterpret_cast<Lookup>(symbol(library, "clGetExtensionFunctionAddress", names[0]));
  if (lookup == nullptr) return;
  stage("start");
  const auto platforms = reinterpret_cast<decltype(Table::platforms)>(lookup("clIcdGetPlatformIDsKHR"));
  if (platforms == nullptr) return fault("abi_mismatch", names[0] + " has no clIcdGetPlatformIDsKHR", JsonRow().add("library", names[0]).add("symbol", "clIcdGetPlatformIDsKHR"));
  void* found[kMost] = {};
  uint32_t n = 0, devices = 0;
  const int32_t code = platforms(kMost, found, &n);
  if (code != 0 && code != kPlatformNotFound) return fault("init_failed", "it cannot list its platforms: " + code_text(code), JsonRow().add("code", code_text(code)));
  for (uint32_t i = 0; i < n && i < kMost; ++i) devices += say_platform(found[i]);
  if (devices == 0) fault("no_device", "it offers no device");
}

}  // namespace tenon::drivers
