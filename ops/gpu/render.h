// ops/gpu/render.h - from a KernelSpec to the text that a driver's compiler takes.
#pragma once
#include "ops/gpu/kernel_spec.h"

namespace tenon::gpu {

// How the parts of a kernel are bound. The order of bindings is the same everywhere: the spec's buffers, then the parameter
// buffer if `params_in_buffer`, then the error word (4 x u32) if the spec can fail. CUDA, HIP and OpenCL take them as arguments
// in that order, followed by the parameter block by value where it is not in a buffer (one struct argument; absent when
// the spec has no scalars). GLSL has them as bindings 0, 1, ... of set 0, and the block as push constants.
struct RenderOptions {
  Dialect dialect = Dialect::OpenCl;
  bool params_in_buffer = false;
};
// Options that a device needs: parameters go to a buffer when they are larger than caps.param_bytes.
RenderOptions render_options(const KernelSpec&, const Caps&);
// Complete text of one kernel. The entry point is spec.name, in GLSL "main".
std::string render(const KernelSpec&, const RenderOptions&);

}  // namespace tenon::gpu
