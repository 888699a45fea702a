// tests/vulkan/param_layout_standin.cpp - param_layout() by its rule in kernel_spec.h, for trees without the kernel texts.
#include <tenon/types.h>

#include "ops/gpu/kernel_spec.h"

namespace tenon::gpu {

ParamLayout param_layout(const KernelSpec& spec) {
  ParamLayout layout;
  for (const ScalarSpec& s : spec.scalars) {
    const uint32_t bytes = s.dtype == TN_U64 || s.dtype == TN_I64 || s.dtype == TN_F64 ? 8 : 4;
    layout.bytes = (layout.bytes + bytes - 1) / bytes * bytes;
    layout.offset.push_back(layout.bytes);
    layout.bytes += bytes;
  }
  layout.bytes = (layout.bytes + 7) / 8 * 8;
  return layout;
}

}  // namespace tenon::gpu
