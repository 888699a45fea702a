// Vulkan: one driver, asked through the interface that loaders use (vk_icdGetInstanceProcAddr), without layers between.
#include <cstdio>
#include <cstring>

#include "tools/drivers/drivers.h"
#include "tools/drivers/library.h"
#include "tools/drivers/say.h"

namespace tenon::drivers {
namespace {

using Function = void (*)();
using Lookup = Function (*)(void* instance, const char*);

struct Application { uint32_t type = 0; const void* next = nullptr; const char* name = "tenon"; uint32_t version = 0; const char* engine = nullptr; uint32_t engine_version = 0, api = 0; };
struct InstanceInfo { uint32_t type = 1; const void* next = nullptr; uint32_t flags = 0; const Application* application = nullptr; uint32_t layers = 0; const char* const* layer_names = nullptr; uint32_t extensions = 0; const char* const* extension_names = nullptr; };
// The head of VkPhysicalDeviceProperties; limits follow, whose size grows in no version.
struct alignas(8) Properties { uint32_t api, driver, vendor, device, type; char name[256]; unsigned char rest[3820]; };
struct Properties2 { uint32_t type = 1000059001; void* next = nullptr; Properties properties{}; };
struct DriverProperties { uint32_t type = 1000196000; void* next = nullptr; uint32_t id = 0; char name[256] = {}, info[256] = {}; uint8_t conformance[4] = {}; };
struct PciProperties { uint32_t type = 1000212000; void* next = nullptr; uint32_t domain = kUnset, bus = 0, device = 0, function = 0; static constexpr uint32_t kUnset = 0xFFFFFFFF; };
struct Heap { uint64_t size; uint32_t flags, pad; };
struct Memory { uint32_t types; struct { uint32_t flags, heap; } type[32]; uint32_t heaps; Heap heap[16]; };
static_assert(offsetof(Memory, heap) == 264);

constexpr uint32_t kMost = 64;
constexpr uint32_t api_number(Version v) { return v.major << 22 | v.minor << 12; }
Version version_of(uint32_t api) { return {api >> 22 & 0x7F, api >> 12 & 0x3FF}; }

std::string code_text(int32_t code) {
  static constexpr struct { int32_t code; const char* name; } kCodes[] = {{-1, "VK_ERROR_OUT_OF_HOST_MEMORY"}, {-2, "VK_ERROR_OUT_OF_DEVICE_MEMORY"}, {-3, "VK_ERROR_INITIALIZATION_FAILED"}, {-4, "VK_ERROR_DEVICE_LOST"}, {-9, "VK_ERROR_INCOMPATIBLE_DRIVER"}};
  for (const auto& c : kCodes)
    if (c.code == code) return c.name;
  return "VkResult " + std::to_string(code);
}

template <class F>
F function(Lookup lookup, void* instance, const char* name) { return reinterpret_cast<F>(lookup(instance, name)); }

const char* type_name(uint32_t type) {
  static constexpr const char* kNames[] = {"other", "integrated gpu", "gpu", "virtual gpu", "cpu"};
  return kNames[type < 5 ? type : 0];
}

uint64_t local_memory(Lookup lookup, void* instance, void* physical) {
  const auto get = function<void (*)(void*, Memory*)>(lookup, instance, "vkGetPhysicalDeviceMemoryProperties");
  if (get == nullptr) return 0;
  Memory memory{};
  get(physical, &memory);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < memory.heaps && i < 16; ++i)
    if (memory.heap[i].flags & 1) sum += memory.heap[i].size;
  return sum;
}

// Name of the driver and place on the bus, where the driver knows these structures; it leaves them alone otherwise.
void add_details(Lookup lookup, void* instance, void* physical, uint32_t api, DeviceFacts* facts) {
  const auto get = function<void (*)(void*, Properties2*)>(lookup, instance, "vkGetPhysicalDeviceProperties2");
  if (get == nullptr || version_of(api) < Version{1, 2}) return;
  PciProperties pci;
  DriverProperties driver;
  driver.next = &pci;
  Properties2 all;
  all.next = &driver;
  get(physical, &all);
  driver.name[255] = driver.info[255] = '\0';
  facts->platform = driver.name;
  if (driver.info[0] != '\0') facts->driver = driver.info;
  if (pci.domain == PciProperties::kUnset) return;
  char address[40];
  std::snprintf(address, sizeof address, "%04x:%02x:%02x.%x", pci.domain, pci.bus, pci.device, pci.function);
  facts->pci = address;
}

void say_device(Lookup lookup, void* instance, void* physical) {
  const auto get = function<void (*)(void*, Properties*)>(lookup, instance, "vkGetPhysicalDeviceProperties");
  if (get == nullptr) return fault("abi_mismatch", "it has no vkGetPhysicalDeviceProperties", JsonRow().add("symbol", "vkGetPhysicalDeviceProperties"));
  Properties p{};
  get(physical, &p);
  p.name[255] = '\0';
  if (version_of(p.api) < kNeedVulkan)
    return fault("driver_too_old", std::string(p.name) + " offers Vulkan " + text(version_of(p.api)), JsonRow().add("have", text(version_of(p.api))).add("need", text(kNeedVulkan)));
  DeviceFacts facts{"", p.name, type_name(p.type), text(version_of(p.api)), text(version_of(p.driver)), "", local_memory(lookup, instance, physical)};
  facts.software = p.type == 4;
  facts.vendor_id = p.vendor;
  facts.device_id = p.device;
  add_details(lookup, instance, physical, p.api, &facts);
  device(facts);
}

void* make_instance(Lookup lookup) {
  const auto version = function<int32_t (*)(uint32_t*)>(lookup, nullptr, "vkEnumerateInstanceVersion");
  const auto create = function<int32_t (*)(const InstanceInfo*, const void*, void**)>(lookup, nullptr, "vkCreateInstance");
  if (create == nullptr) return fault("abi_mismatch", "it has no vkCreateInstance", JsonRow().add("symbol", "vkCreateInstance")), nullptr;
  Application application;
  application.api = api_number({1, 0});
  if (version != nullptr && version(&application.api) == 0 && !(version_of(application.api) < kNeedVulkan)) application.api = api_number(kNeedVulkan);
  InstanceInfo info;
  info.application = &application;
  void* instance = nullptr;
  const int32_t code = create(&info, nullptr, &instance);
  if (code == 0 && instance != nullptr) return instance;
  fault("init_failed", "vkCreateInstance gave " + code_text(code), JsonRow().add("code", code_text(code)));
  return nullptr;
}

}  // namespace

void try_vulkan(const Names& names) {
  stage("load");
  void* library = open_library(names);
  if (library == nullptr) return;
  const auto lookup = reinterpret_cast<Lookup>(symbol(library, "vk_icdGetInstanceProcAddr", names[0]));
  if (lookup == nullptr) return;
  stage("start");
  const auto negotiate = function<int32_t (*)(uint32_t*)>(lookup, nullptr, "vk_icdNegotiateLoaderICDInterfaceVersion");
  uint32_t interface = 5;
  if (negotiate != nullptr) negotiate(&interface);
  void* instance = make_instance(lookup);
  if (instance == nullptr) return;
  stage("devices");
  const auto list = function<int32_t (*)(void*, uint32_t*, void**)>(lookup, instance, "vkEnumeratePhysicalDevices");
  void* devices[kMost] = {};
  uint32_t n = kMost;
  const int32_t code = list != nullptr ? list(instance, &n, devices) : -3;
  if (code < 0) return fault("init_failed", "vkEnumeratePhysicalDevices gave " + code_text(code), JsonRow().add("code", code_text(code)));
  for (uint32_t i = 0; i < n && i < kMost; ++i) say_device(lookup, instance, devices[i]);
  if (n == 0) fault("no_device", "it offers no device");
}

}  // namespace tenon::drivers
