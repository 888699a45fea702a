// ops/gpu/caps.h - what kernel texts and recipes ask about a device. Filled by the device's plugin, once.
//
// Every limit may be lowered by the plugin's configuration (tests do), never raised. All sizes in bytes unless said.
#pragma once
#include <cstdint>
#include <string>

namespace tenon::gpu {

enum class Dialect : uint8_t { Cuda, Hip, OpenCl, Glsl };

// A processor that runs work-groups as loops wants wide vectors and no local memory; a GPU wants the opposite.
enum class DeviceClass : uint8_t { Gpu, Processor };

struct Caps {
  Dialect dialect = Dialect::OpenCl;
  DeviceClass device_class = DeviceClass::Gpu;
  std::string architecture;           // "sm_90", "gfx90a", "" where the API has no such word; part of every cache key
  // Masks of 1 << dtype. A type is storable when a buffer can hold its bits and the dialect can convert them; arithmetic and
  // matrix units are further questions, and none follows from another.
  uint64_t storage = 0, arithmetic = 0, matrix = 0;
  bool atomic_f32_add = false, atomic_i64 = false;
  uint32_t subgroup_min = 1, subgroup_max = 1;  // lanes; 1 = no sub-group functions
  bool subgroup_fixed = false;                  // the size can be demanded for a kernel (Vulkan: size control; CUDA: always)
  uint32_t max_threads = 256;                   // of one work-group
  uint32_t max_group[3] = {256, 256, 64};       // per axis
  uint64_t max_groups[3] = {65535, 65535, 65535};  // work-groups of a launch per axis
  uint64_t local_bytes = 16384;                 // local memory of a work-group
  uint64_t param_bytes = 128;                   // by-value parameters; larger blocks lie in a buffer (RenderOptions)
  uint64_t binding_bytes = uint64_t{1} << 27;   // largest range that one binding may reach
  uint32_t max_bindings = 16;                   // buffers of one kernel, parameters and error word included
  // A byte offset that is a multiple of this can be bound in place; the rest reaches the kernel as an element offset.
  // 0 = only the buffer's start can be bound.
  uint64_t binding_align = 256;
  bool index64 = true;                          // 64-bit indices can be used; without it recipes split above 2^31 elements
  uint32_t vector_bytes = 16;                   // the width that loads and stores like best
  uint32_t compute_units = 1;
};

}  // namespace tenon::gpu
