// ops/gpu/kernel_spec.cpp - layout of the scalars' block.
#include "ops/gpu/kernel_spec.h"

#include <tenon/types.h>

namespace tenon::gpu {

ParamLayout param_layout(const KernelSpec& spec) {
  ParamLayout layout;
  for (const ScalarSpec& s : spec.scalars) {
    const uint32_t size = s.dtype == TN_U64 || s.dtype == TN_I64 || s.dtype == TN_F64 ? 8 : 4;
    layout.bytes = (layout.bytes + size - 1) / size * size;
    layout.offset.push_back(layout.bytes);
    layout.bytes += size;
  }
  layout.bytes = (layout.bytes + 7) / 8 * 8;
  return layout;
}

}  // namespace tenon::gpu
