#include "backends/opencl/facts.h"

#include <tenon/caps.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace tenon::gpu::opencl {
namespace {

constexpr cl_uint kMost = 64;
// Of extensions, as their specifications number them.
constexpr cl_uint kUuid = 0x106A, kPciBus = 0x410F, kWarpNv = 0x4003, kBusNv = 0x4008, kSlotNv = 0x4009, kDomainNv = 0x400A, kTopologyAmd = 0x4037, kWaveAmd = 0x4043, kSubgroupsIntel = 0x4108, kHalfConfig = 0x1033;
constexpr uint64_t bit(int dtype) { return uint64_t{1} << dtype; }

int version_in(const std::string& text) {
  int major = 0, minor = 0;
  return std::sscanf(text.c_str(), "OpenCL %d.%d", &major, &minor) == 2 ? major * 100 + minor * 10 : 0;
}
std::string version_text(int version) { return "CL" + std::to_string(version / 100) + "." + std::to_string(version / 10 % 10); }

struct Reader {
  const Api& api;
  cl_device_id device;
  std::string extensions = " " + text_of(api.clGetDeviceInfo, device, CL_DEVICE_EXTENSIONS) + " ";
  int version = version_in(text_of(api.clGetDeviceInfo, device, CL_DEVICE_VERSION));
  cl_device_type type = number_of<cl_device_type>(api, device, CL_DEVICE_TYPE);

  bool has(const char* extension) const { return extensions.find(" " + std::string(extension) + " ") != std::string::npos; }
  // Some stand-ins call themselves every type at once: those run on the processor.
  bool processor() const { return (type & CL_DEVICE_TYPE_CPU) != 0 || (type & (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR)) == 0; }
  template <class T>
  T get(cl_uint what, T fallback = {}) const { return number_of<T>(api, device, what, fallback); }
};

void fill_types(const Reader& r, Caps* caps) {
  const bool full = text_of(r.api.clGetDeviceInfo, r.device, CL_DEVICE_PROFILE) != "EMBEDDED_PROFILE";
  const bool i64 = full || r.has("cles_khr_int64");
  // The extension's name alone is not enough: some drivers list it and state no operation.
  const bool f64 = r.get<cl_device_fp_config>(CL_DEVICE_DOUBLE_FP_CONFIG) != 0 && (r.version >= 120);
  caps->arithmetic = bit(TN_BOOL) | bit(TN_U8) | bit(TN_I8) | bit(TN_U16) | bit(TN_I16) | bit(TN_U32) | bit(TN_I32) | bit(TN_F32);
  if (i64) caps->arithmetic |= bit(TN_U64) | bit(TN_I64);
  if (f64) caps->arithmetic |= bit(TN_F64);
  caps->storage = caps->arithmetic | bit(TN_F16) | bit(TN_BF16);  // as 16-bit words, converted by the kernel
  if (r.has("cl_khr_fp16") && r.get<cl_device_fp_config>(kHalfConfig) != 0) caps->arithmetic |= bit(TN_F16);
  caps->atomic_i64 = i64 && r.has("cl_khr_int64_base_atomics") && r.has("cl_khr_int64_extended_atomics");
  caps->index64 = i64 && r.get<cl_uint>(CL_DEVICE_ADDRESS_BITS, 32) == 64;
}

void fill_subgroups(const Reader& r, Caps* caps) {
  const bool core = r.version >= 300 && r.get<cl_uint>(CL_DEVICE_MAX_NUM_SUB_GROUPS) > 1;
  if (!core && !r.has("cl_khr_subgroups") && !r.has("cl_intel_subgroups")) return;
  size_t sizes[16] = {}, bytes = 0;
  if (r.has("cl_intel_required_subgroup_size") && r.api.clGetDeviceInfo(r.device, kSubgroupsIntel, sizeof sizes, sizes, &bytes) == CL_SUCCESS && bytes >= sizeof sizes[0]) {
    const auto [least, most] = std::minmax_element(sizes, sizes + bytes / sizeof sizes[0]);
    caps->subgroup_min = static_cast<uint32_t>(*least), caps->subgroup_max = static_cast<uint32_t>(*most), caps->subgroup_fixed = true;
  } else if (const cl_uint warp = r.has("cl_nv_device_attribute_query") ? r.get<cl_uint>(kWarpNv) : 0; warp != 0) caps->subgroup_min = caps->subgroup_max = warp;
  else if (const cl_uint wave = r.has("cl_amd_device_attribute_query") ? r.get<cl_uint>(kWaveAmd) : 0; wave != 0) caps->subgroup_min = caps->subgroup_max = wave;
}

Caps read_caps(const Reader& r, uint64_t memory, uint64_t largest) {
  Caps c;
  c.dialect = Dialect::OpenCl;
  c.device_class = r.processor() ? DeviceClass::Processor : DeviceClass::Gpu;
  fill_types(r, &c);
  fill_subgroups(r, &c);
  c.max_threads = static_cast<uint32_t>(std::clamp<size_t>(r.get<size_t>(CL_DEVICE_MAX_WORK_GROUP_SIZE, 1), 1, 4096));
  size_t axis[8] = {};
  const bool known = r.get<cl_uint>(CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS) >= 3 && r.api.clGetDeviceInfo(r.device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof axis, axis, nullptr) == CL_SUCCESS;
  for (int i = 0; i < 3; ++i) c.max_group[i] = known ? static_cast<uint32_t>(std::clamp<size_t>(axis[i], 1, c.max_threads)) : i == 0 ? c.max_threads : 1;
  // OpenCL states no limit of groups; drivers count threads of an axis in 32 bits.
  for (uint64_t& groups : c.max_groups) groups = UINT32_MAX / c.max_threads;
  c.local_bytes = r.get<cl_ulong>(CL_DEVICE_LOCAL_MEM_SIZE);
  const size_t arguments = r.get<size_t>(CL_DEVICE_MAX_PARAMETER_SIZE, 256);
  c.param_bytes = std::min<size_t>(arguments / 2, 4096);
  c.max_bindings = static_cast<uint32_t>(std::clamp<size_t>(arguments / 2 / 8, 8, 60));
  c.binding_bytes = std::min(largest, memory);
  c.binding_align = 0;  // a sub-buffer would have to be made for each offset
  const cl_uint width = std::clamp<cl_uint>(r.get<cl_uint>(CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, 4), 1, 16);
  c.vector_bytes = c.device_class == DeviceClass::Processor ? std::max<uint32_t>(width * 4, 16) : 16;
  c.compute_units = std::max<cl_uint>(1, r.get<cl_uint>(CL_DEVICE_MAX_COMPUTE_UNITS, 1));
  return c;
}

void fill_address(const Reader& r, tn_device_info* info) {
  cl_uint pci[4] = {};
  if (r.has("cl_khr_pci_bus_info") && r.api.clGetDeviceInfo(r.device, kPciBus, sizeof pci, pci, nullptr) == CL_SUCCESS) {
    info->pci_domain = pci[0], info->pci_bdf = pci[1] << 8 | pci[2] << 3 | pci[3];
  } else if (r.has("cl_nv_device_attribute_query")) {
    const cl_uint slot = r.get<cl_uint>(kSlotNv);  // device << 3 | function
    info->pci_domain = r.get<cl_uint>(kDomainNv), info->pci_bdf = r.get<cl_uint>(kBusNv) << 8 | slot;
  } else if (unsigned char raw[24] = {}; r.has("cl_amd_device_attribute_query") && r.api.clGetDeviceInfo(r.device, kTopologyAmd, sizeof raw, raw, nullptr) == CL_SUCCESS) {
    info->pci_bdf = uint32_t{raw[21]} << 8 | uint32_t{raw[22]} << 3 | raw[23];
  }
}

void fill_info(const Reader& r, const std::string& platform, DeviceOf* out) {
  tn_device_info& info = out->facts.info;
  const Caps& caps = out->facts.gpu;
  info.kind = TN_KIND_OPENCL;
  out->facts.emulated = r.processor();
  if (!r.processor() && r.get<cl_bool>(CL_DEVICE_HOST_UNIFIED_MEMORY) != 0) info.flags |= TN_DEVICE_INTEGRATED;
  static constexpr uint8_t kNone[16] = {};
  if (r.has("cl_khr_device_uuid") && r.api.clGetDeviceInfo(r.device, kUuid, sizeof info.uuid, info.uuid, nullptr) == CL_SUCCESS && !r.processor() && std::memcmp(info.uuid, kNone, 16) != 0)
    info.flags |= TN_DEVICE_UUID_TRUSTED;
  fill_address(r, &info);
  info.vendor_id = r.get<cl_uint>(CL_DEVICE_VENDOR_ID);
  info.dtype_storage = caps.storage, info.dtype_compute = caps.arithmetic, info.dtype_matrix = caps.matrix;
  info.n_spaces = 1;
  std::snprintf(info.name, sizeof info.name, "%.63s", text_of(r.api.clGetDeviceInfo, r.device, CL_DEVICE_NAME).c_str());
  const std::string driver = "OpenCL " + std::to_string(r.version / 100) + "." + std::to_string(r.version / 10 % 10) + ", " + platform.substr(0, 30) + " " + text_of(r.api.clGetDeviceInfo, r.device, CL_DRIVER_VERSION);
  std::snprintf(info.driver, sizeof info.driver, "%.63s", driver.c_str());
}

std::string options_of(const Reader& r, int version) {
  std::string options = "-cl-std=" + version_text(version);
  if ((r.get<cl_device_fp_config>(CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  return options;
}

// NULL with the reason where the device cannot be used.
std::unique_ptr<DeviceOf> describe(const Api& api, cl_platform_id platform, cl_device_id device, std::string* why) {
  const Reader r{api, device};
  const std::string name = text_of(api.clGetPlatformInfo, platform, CL_PLATFORM_NAME);
  const uint64_t memory = r.get<cl_ulong>(CL_DEVICE_GLOBAL_MEM_SIZE);
  if ((r.type & CL_DEVICE_TYPE_CUSTOM) != 0) *why = "it runs no kernels of OpenCL C";
  else if (r.version < 120) *why = "its OpenCL is older than 1.2";
  else if (!r.get<cl_bool>(CL_DEVICE_AVAILABLE)) *why = "its driver calls it not available";
  else if (!r.get<cl_bool>(CL_DEVICE_COMPILER_AVAILABLE)) *why = "its driver has no compiler";
  else if (!r.get<cl_bool>(CL_DEVICE_ENDIAN_LITTLE, CL_TRUE)) *why = "it is big-endian";
  else if (memory == 0) *why = "its driver states no memory";
  if (!why->empty()) return nullptr;
  auto out = std::make_unique<DeviceOf>();
  out->platform = platform, out->device = device;
  const uint64_t largest = std::min<uint64_t>(r.get<cl_ulong>(CL_DEVICE_MAX_MEM_ALLOC_SIZE, memory / 4), memory);
  out->facts.gpu = read_caps(r, memory, largest);
  out->facts.max_alloc_bytes = largest;
  fill_info(r, name, out.get());
  out->facts.info.mem_total_bytes = out->facts.info.mem_free_bytes = memory;
  out->build_options = options_of(r, 120);
  out->subgroup_options = options_of(r, std::min(r.version, 300) == 300 ? 300 : 200);
  out->cache_key = name + "\n" + text_of(api.clGetPlatformInfo, platform, CL_PLATFORM_VERSION) + "\n" + out->facts.info.name + "\n" + text_of(api.clGetDeviceInfo, device, CL_DEVICE_VERSION) + "\n" +
                   text_of(api.clGetDeviceInfo, device, CL_DRIVER_VERSION) + "\n" + out->build_options + "\n" + out->subgroup_options;
  tn_cap launch{TN_CAPKEY_LAUNCH_NS, TN_CAP_F64, TN_FROM_GUESS, {}};
  launch.v.f = r.processor() ? 20000 : 8000;
  out->facts.caps.push_back(launch);
  return out;
}

}  // namespace

std::vector<std::unique_ptr<DeviceOf>> find_devices(const Api& api, std::vector<std::string>* skipped) {
  std::vector<std::unique_ptr<DeviceOf>> all;
  cl_platform_id platforms[kMost] = {};
  cl_uint n_platforms = 0;
  if (api.clGetPlatformIDs(kMost, platforms, &n_platforms) != CL_SUCCESS) return all;
  for (cl_uint p = 0; p < std::min(n_platforms, kMost); ++p) {
    const std::string name = text_of(api.clGetPlatformInfo, platforms[p], CL_PLATFORM_NAME), version = text_of(api.clGetPlatformInfo, platforms[p], CL_PLATFORM_VERSION);
    if (version_in(version) < 120) {
      skipped->push_back(name + ": " + version + " is older than OpenCL 1.2");
      continue;
    }
    cl_device_id devices[kMost] = {};
    cl_uint n = 0;
    const cl_int code = api.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, kMost, devices, &n);
    if (code != CL_SUCCESS) {
      if (code != CL_DEVICE_NOT_FOUND) skipped->push_back(name + " cannot list its devices: " + code_text(code));
      continue;
    }
    for (cl_uint d = 0; d < std::min(n, kMost); ++d) {
      std::string why;
      auto found = describe(api, platforms[p], devices[d], &why);
      if (found != nullptr) all.push_back(std::move(found));
      else skipped->push_back(name + ", device " + std::to_string(d) + " (" + text_of(api.clGetDeviceInfo, devices[d], CL_DEVICE_NAME) + "): " + why);
    }
  }
  // What the processor does in OpenCL's name comes last: number 0 is a real device where there is one.
  std::stable_partition(all.begin(), all.end(), [](const auto& d) { return !d->facts.emulated; });
  return all;
}

}  // namespace tenon::gpu::opencl
