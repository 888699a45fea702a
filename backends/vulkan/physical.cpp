// backends/vulkan/physical.cpp - see physical.h.
#include "backends/vulkan/physical.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>
#include <tuple>

namespace tenon::vulkan {
namespace {

struct Properties {
  VkPhysicalDeviceProperties2 core{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceIDProperties id{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
  VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  VkPhysicalDeviceMaintenance3Properties memory{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  VkPhysicalDeviceSubgroupProperties subgroup{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceSubgroupSizeControlPropertiesEXT sizes{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT};
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT};
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT import{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
  VkPhysicalDeviceShaderCorePropertiesAMD amd{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD};

  void ask(const InstanceApi& fn, const Physical& device) {
    void** end = &core.pNext;
    const auto add = [&end](auto& part) {
      *end = &part;
      end = &part.pNext;
    };
    add(id), add(driver), add(memory), add(subgroup);
    if (device.has(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) add(sizes);
    if (device.has(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME)) add(pci);
    if (device.has(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) add(import);
    if (device.has(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) add(nvidia);
    if (device.has(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)) add(amd);
    fn.vkGetPhysicalDeviceProperties2(device.handle, &core);
  }
};

std::set<std::string> extension_names(const InstanceApi& fn, VkPhysicalDevice handle) {
  uint32_t n = 0;
  fn.vkEnumerateDeviceExtensionProperties(handle, nullptr, &n, nullptr);
  std::vector<VkExtensionProperties> all(n);
  fn.vkEnumerateDeviceExtensionProperties(handle, nullptr, &n, all.data());
  std::set<std::string> names;
  for (uint32_t i = 0; i < n && i < all.size(); ++i) names.insert(all[i].extensionName);
  return names;
}

// A family for computing: one without graphics where there is one, so that a desktop's frames are not waited for.
bool choose_queues(const InstanceApi& fn, Physical* device) {
  uint32_t n = 0;
  fn.vkGetPhysicalDeviceQueueFamilyProperties(device->handle, &n, nullptr);
  std::vector<VkQueueFamilyProperties> families(n);
  fn.vkGetPhysicalDeviceQueueFamilyProperties(device->handle, &n, families.data());
  bool found = false;
  for (const bool with_graphics : {false, true})
    for (uint32_t i = 0; i < n && !found; ++i) {
      const VkQueueFlags flags = families[i].queueFlags;
      found = families[i].queueCount != 0 && (flags & VK_QUEUE_COMPUTE_BIT) != 0 && ((flags & VK_QUEUE_GRAPHICS_BIT) != 0) == with_graphics;
      if (found) device->queue_family = i, device->n_queues = std::min(families[i].queueCount, 8u);
    }
  return found;
}

constexpr uint64_t bit(uint32_t dtype) { return uint64_t{1} << dtype; }

// The kernel texts hold 16-bit floats in uint16_t and compute in f32, so that storage needs 16-bit access only.
void fill_types(const Features& f, gpu::Caps* caps) {
  const bool f64 = f.core.features.shaderFloat64 != 0, i64 = f.core.features.shaderInt64 != 0;
  const bool bytes = f.v12.storageBuffer8BitAccess != 0 && f.v12.shaderInt8 != 0;
  const bool halves = f.v11.storageBuffer16BitAccess != 0 && f.core.features.shaderInt16 != 0;
  caps->storage = bit(TN_U32) | bit(TN_I32) | bit(TN_F32);
  caps->arithmetic = caps->storage;
  if (bytes) caps->storage |= bit(TN_BOOL) | bit(TN_U8) | bit(TN_I8) | bit(TN_F8E4M3) | bit(TN_F8E5M2), caps->arithmetic |= bit(TN_BOOL) | bit(TN_U8) | bit(TN_I8);
  if (halves) caps->storage |= bit(TN_U16) | bit(TN_I16) | bit(TN_F16) | bit(TN_BF16), caps->arithmetic |= bit(TN_U16) | bit(TN_I16);
  if (f.v12.shaderFloat16 != 0 && halves) caps->arithmetic |= bit(TN_F16);
  if (i64) caps->storage |= bit(TN_U64) | bit(TN_I64), caps->arithmetic |= bit(TN_U64) | bit(TN_I64);
  if (f64) caps->storage |= bit(TN_F64), caps->arithmetic |= bit(TN_F64);
  caps->index64 = i64;
  caps->atomic_f32_add = f.atomic.shaderBufferFloat32AtomicAdd != 0;
  caps->atomic_i64 = f.v12.shaderBufferInt64Atomics != 0;
}

void fill_subgroups(const Features& f, const Properties& p, Physical* device) {
  constexpr VkSubgroupFeatureFlags kNeeded = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  gpu::Caps& caps = device->caps;
  if ((p.subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) == 0 || (p.subgroup.supportedOperations & kNeeded) != kNeeded) return;
  caps.subgroup_min = caps.subgroup_max = p.subgroup.subgroupSize;
  if (f.subgroup.subgroupSizeControl == 0) return;
  caps.subgroup_min = p.sizes.minSubgroupSize, caps.subgroup_max = p.sizes.maxSubgroupSize;
  caps.subgroup_fixed = (p.sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  device->full_subgroups = f.subgroup.computeFullSubgroups != 0;
}

void fill_limits(const Properties& p, Physical* device) {
  const VkPhysicalDeviceLimits& l = device->limits;
  gpu::Caps& caps = device->caps;
  caps.dialect = gpu::Dialect::Glsl;
  const bool processor = device->type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  caps.device_class = processor ? gpu::DeviceClass::Processor : gpu::DeviceClass::Gpu;
  caps.max_threads = l.maxComputeWorkGroupInvocations;
  for (int i = 0; i < 3; ++i) caps.max_group[i] = l.maxComputeWorkGroupSize[i], caps.max_groups[i] = l.maxComputeWorkGroupCount[i];
  caps.local_bytes = l.maxComputeSharedMemorySize;
  caps.param_bytes = l.maxPushConstantsSize;
  caps.binding_bytes = l.maxStorageBufferRange;
  caps.binding_align = std::max<uint64_t>(l.minStorageBufferOffsetAlignment, 16);
  caps.max_bindings = std::min({l.maxPerStageDescriptorStorageBuffers, l.maxDescriptorSetStorageBuffers, l.maxPerStageResources, gpu::kMostBindings});
  if (processor) caps.compute_units = std::max(1u, std::thread::hardware_concurrency());
  if (p.nvidia.shaderSMCount != 0) caps.compute_units = p.nvidia.shaderSMCount;
  if (p.amd.shaderEngineCount != 0) caps.compute_units = p.amd.shaderEngineCount * p.amd.shaderArraysPerEngineCount * p.amd.computeUnitsPerShaderArray;
}

bool all_zero(const uint8_t (&bytes)[VK_UUID_SIZE]) {
  return std::all_of(bytes, bytes + VK_UUID_SIZE, [](uint8_t b) { return b == 0; });
}

void fill_info(const Properties& p, Physical* device) {
  tn_device_info& info = device->facts.info;
  const bool processor = device->type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  device->facts.emulated = processor;
  info.kind = TN_KIND_VULKAN;
  if (processor) info.flags |= TN_DEVICE_EMULATED;
  if (device->type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU) info.flags |= TN_DEVICE_INTEGRATED;
  std::memcpy(info.uuid, p.id.deviceUUID, sizeof info.uuid);
  // A software device's "UUID" is the version of its driver: the same on every machine.
  if (!processor && !all_zero(p.id.deviceUUID)) info.flags |= TN_DEVICE_UUID_TRUSTED;
  info.pci_domain = p.pci.pciDomain;
  info.pci_bdf = p.pci.pciBus << 8 | p.pci.pciDevice << 3 | p.pci.pciFunction;
  info.vendor_id = p.core.properties.vendorID, info.device_id = p.core.properties.deviceID;
  for (uint32_t i = 0; i < device->memory.memoryHeapCount; ++i)
    if ((device->memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0) info.mem_total_bytes += device->memory.memoryHeaps[i].size;
  info.dtype_storage = device->caps.storage, info.dtype_compute = device->caps.arithmetic, info.dtype_matrix = device->caps.matrix;
  info.n_spaces = 2;
  std::snprintf(info.name, sizeof info.name, "%.63s", p.core.properties.deviceName);
  std::snprintf(info.driver, sizeof info.driver, "%.20s %.40s", p.driver.driverName, p.driver.driverInfo);
}

void copy_properties(const Properties& p, Physical* out) {
  out->limits = p.core.properties.limits;
  out->type = p.core.properties.deviceType;
  out->max_allocation_bytes = p.memory.maxMemoryAllocationSize;
  out->import_align = p.import.minImportedHostPointerAlignment;
  out->driver_id = p.driver.driverID;
  std::memcpy(out->driver_uuid, p.id.driverUUID, VK_UUID_SIZE);
  std::memcpy(out->cache_uuid, p.core.properties.pipelineCacheUUID, VK_UUID_SIZE);
}

int type_rank(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return 4;
    default: return 3;
  }
}

// Equal keys mean the same device through the same driver: one manifest listed twice. Two drivers of one card (RADV and
// AMDVLK, say) differ in the driver and stay apart; the core knows them as routes of one device by UUID or PCI address.
auto identity(const Physical& d) {
  const tn_device_info& i = d.facts.info;
  return std::make_tuple(type_rank(d.type), i.pci_domain, i.pci_bdf, std::string(reinterpret_cast<const char*>(i.uuid), sizeof i.uuid),
                         static_cast<int>(d.driver_id), std::string(reinterpret_cast<const char*>(d.driver_uuid), VK_UUID_SIZE), std::string(i.name));
}

}  // namespace

std::string describe(const InstanceApi& fn, VkPhysicalDevice handle, Physical* out) {
  out->handle = handle;
  VkPhysicalDeviceProperties2 first{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  fn.vkGetPhysicalDeviceProperties2(handle, &first);
  const std::string name = first.properties.deviceName;
  out->api_version = first.properties.apiVersion;
  if (out->api_version < VK_API_VERSION_1_2)
    return name + " speaks Vulkan " + std::to_string(VK_API_VERSION_MAJOR(out->api_version)) + "." + std::to_string(VK_API_VERSION_MINOR(out->api_version)) + ", 1.2 is needed";
  if (!choose_queues(fn, out)) return name + " has no queue that computes";
  out->extensions = extension_names(fn, handle);
  Features features;
  features.link(out->extensions);
  fn.vkGetPhysicalDeviceFeatures2(handle, &features.core);
  if (features.v12.timelineSemaphore == 0) return name + " has no timeline semaphores";
  VkPhysicalDeviceMemoryProperties2 memory{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
  fn.vkGetPhysicalDeviceMemoryProperties2(handle, &memory);
  out->memory = memory.memoryProperties;
  Properties p;
  p.ask(fn, *out);
  copy_properties(p, out);
  fill_limits(p, out);
  fill_types(features, &out->caps);
  fill_subgroups(features, p, out);
  fill_info(p, out);
  out->facts.gpu = out->caps;
  out->facts.max_alloc_bytes = std::min(out->max_allocation_bytes, out->facts.info.mem_total_bytes);
  out->facts.info.mem_free_bytes = budget_bytes(fn, *out);
  return "";
}

std::vector<Physical> find_devices(const InstanceApi& fn, VkInstance instance, std::vector<std::string>* refused) {
  uint32_t n = 0;
  std::vector<Physical> found;
  if (const VkResult r = fn.vkEnumeratePhysicalDevices(instance, &n, nullptr); r < 0) {
    refused->push_back("vkEnumeratePhysicalDevices said VkResult " + std::to_string(r));
    return found;
  }
  std::vector<VkPhysicalDevice> handles(n);
  fn.vkEnumeratePhysicalDevices(instance, &n, handles.data());
  for (uint32_t i = 0; i < n && i < handles.size(); ++i) {
    Physical device;
    if (std::string why = describe(fn, handles[i], &device); why.empty())
      found.push_back(std::move(device));
    else
      refused->push_back(std::move(why));
  }
  std::stable_sort(found.begin(), found.end(), [](const Physical& a, const Physical& b) { return identity(a) < identity(b); });
  for (size_t i = found.size(); i-- > 1;)
    if (!all_zero(found[i].facts.info.uuid) && identity(found[i]) == identity(found[i - 1])) {
      refused->push_back(std::string(found[i].facts.info.name) + " is listed twice by " + found[i].facts.info.driver);
      found.erase(found.begin() + static_cast<std::ptrdiff_t>(i));
    }
  return found;
}

uint64_t budget_bytes(const InstanceApi& fn, const Physical& device) {
  if (!device.has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME)) return 0;
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 memory{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
  memory.pNext = &budget;
  fn.vkGetPhysicalDeviceMemoryProperties2(device.handle, &memory);
  uint64_t free = 0;
  for (uint32_t i = 0; i < device.memory.memoryHeapCount; ++i)
    if ((device.memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0 && budget.heapBudget[i] > budget.heapUsage[i])
      free += budget.heapBudget[i] - budget.heapUsage[i];
  return free;
}

}  // namespace tenon::vulkan
