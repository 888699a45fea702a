// backends/vulkan/features.cpp - which features are asked for when a device is opened.
#include "backends/vulkan/physical.h"

namespace tenon::vulkan {

void Features::link(const std::set<std::string>& extensions) {
  core.pNext = &v11;
  v11.pNext = &v12;
  void** end = &v12.pNext;
  const auto add = [&end](auto& part) {
    *end = &part;
    part.pNext = nullptr;
    end = &part.pNext;
  };
  *end = nullptr;
  if (extensions.count(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME) != 0) add(subgroup);
  if (extensions.count(VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME) != 0) add(atomic);
}

void Features::take_useful(const Features& present) {
#define TAKE(part, name) part.name = present.part.name
  TAKE(core.features, shaderFloat64);
  TAKE(core.features, shaderInt64);
  TAKE(core.features, shaderInt16);
  TAKE(v11, storageBuffer16BitAccess);
  TAKE(v12, storageBuffer8BitAccess);
  TAKE(v12, shaderFloat16);
  TAKE(v12, shaderInt8);
  TAKE(v12, shaderBufferInt64Atomics);
  TAKE(v12, shaderSubgroupExtendedTypes);
  TAKE(v12, scalarBlockLayout);
  TAKE(v12, timelineSemaphore);
  TAKE(subgroup, subgroupSizeControl);
  TAKE(subgroup, computeFullSubgroups);
  TAKE(atomic, shaderBufferFloat32Atomics);
  TAKE(atomic, shaderBufferFloat32AtomicAdd);
#undef TAKE
}

}  // namespace tenon::vulkan
