#include <algorithm>
#include <cstring>

#include "backends/gpu_common/cu_like/device.h"

namespace tenon::gpu::cu_like {
namespace {

// Kernel arguments may fill 4 KiB in both APIs; the rest is for the pointers.
constexpr uint64_t kParamBytes = 3072;
// Pointers can begin anywhere. A multiple of 16 keeps vector loads aligned however a view begins; what is left reaches the
// kernel as an element offset.
constexpr uint64_t kBindingAlign = 16;

int attribute(const Api& api, int device, int number, int fallback) {
  int value = 0;
  return api.device_attribute(&value, number, device) == kGood && value > 0 ? value : fallback;
}

Caps read_caps(const Api& api, const Flavor& flavor, const Facts& facts) {
  const Attributes& a = flavor.attributes;
  const int device = facts.device;
  const Types types = flavor.types(facts.architecture);
  Caps caps;
  caps.dialect = flavor.dialect;
  caps.device_class = DeviceClass::Gpu;
  caps.architecture = facts.architecture;
  caps.storage = types.storage, caps.arithmetic = types.arithmetic, caps.matrix = types.matrix;
  caps.atomic_f32_add = caps.atomic_i64 = true;
  caps.subgroup_min = caps.subgroup_max = static_cast<uint32_t>(attribute(api, device, a.warp_size, 32));
  caps.subgroup_fixed = true;
  caps.max_threads = static_cast<uint32_t>(attribute(api, device, a.max_threads, 1024));
  for (int axis = 0; axis < 3; ++axis) {
    caps.max_group[axis] = static_cast<uint32_t>(attribute(api, device, a.max_group[axis], 64));
    caps.max_groups[axis] = static_cast<uint64_t>(attribute(api, device, a.max_groups[axis], 65535));
    if (flavor.most_items != 0) caps.max_groups[axis] = std::min(caps.max_groups[axis], flavor.most_items / caps.max_threads);
  }
  caps.local_bytes = static_cast<uint64_t>(attribute(api, device, a.local_bytes, 49152));
  caps.param_bytes = kParamBytes;
  caps.binding_bytes = uint64_t{1} << 46;
  caps.max_bindings = kMostBindings;
  caps.binding_align = kBindingAlign;
  caps.index64 = true;
  caps.compute_units = static_cast<uint32_t>(std::max(facts.multiprocessors, 1));
  return caps;
}

}  // namespace

Facts read_facts(const Api& api, const Flavor& flavor, int ordinal) {
  const Attributes& a = flavor.attributes;
  Facts f;
  if (api.device_get(&f.device, ordinal) != kGood) f.device = ordinal;
  char text[256] = {};
  if (api.device_name(text, sizeof text, f.device) == kGood) f.name = text;
  std::memset(text, 0, sizeof text);
  if (api.device_pci(text, sizeof text, f.device) == kGood) f.pci = text;
  if (api.device_uuid == nullptr || api.device_uuid(&f.uuid, f.device) != kGood) f.uuid = {};
  size_t bytes = 0;
  if (api.device_memory(&bytes, f.device) == kGood) f.memory_bytes = bytes;
  f.architecture = flavor.architecture(api, f.device);
  f.multiprocessors = attribute(api, f.device, a.multiprocessors, 1);
  f.clock_khz = attribute(api, f.device, a.clock_khz, 0);
  f.memory_clock_khz = attribute(api, f.device, a.memory_clock_khz, 0);
  f.memory_bus_bits = attribute(api, f.device, a.memory_bus_bits, 0);
  f.l2_bytes = attribute(api, f.device, a.l2_bytes, 0);
  f.integrated = attribute(api, f.device, a.integrated, 0) != 0;
  f.pools = attribute(api, f.device, a.memory_pools, 0) != 0 && api.mem_alloc_async != nullptr && api.mem_free_async != nullptr;
  f.caps = read_caps(api, flavor, f);
  return f;
}

}  // namespace tenon::gpu::cu_like
