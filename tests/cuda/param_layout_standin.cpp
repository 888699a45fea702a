#include "ops/gpu/kernel_spec.h"
#include <tenon/types.h>
namespace tenon::gpu {
ParamLayout param_layout(const KernelSpec& s) {
  ParamLayout l;
  for (const ScalarSpec& x : s.scalars) { uint32_t n = x.dtype == TN_U64 || x.dtype == TN_I64 || x.dtype == TN_F64 ? 8 : 4; l.bytes = (l.bytes + n - 1) / n * n; l.offset.push_back(l.bytes); l.bytes += n; }
  l.bytes = (l.bytes + 7) / 8 * 8;
  return l;
}
}
