// backends/onednn/epilogue.h - recognises the scalar programs that the matmul kernels can run as an epilogue.
//
// Form (each part optional, operands of add and max in either order):
//   out = cast(floor_at(accumulator + bias, constant))     bias: INPUT 1, cast to f32 if it is narrow
//   floor_at(v, c) = MAX(v, c)   or   SELECT(LE(v, c), c, v), which is how relu is written
// Any other program is refused with the opcode the matcher stopped at.
#pragma once
#include <tenon/plugin.h>

#include "backends/onednn/recipe.h"

namespace tenon::onednn {

struct Epilogue {
  bool has_bias = false;
  uint32_t bias_dtype = 0;
  bool has_clamp = false;
  ClampRule clamp_rule = ClampRule::Max;
  uint32_t clamp_slot = 0;  // push slot of the constant, f32
};

// `post` may be null: no epilogue. `out_dtype`: f32 or bf16. errors: TN_E_UNSUPPORTED.
tn_status match_epilogue(const tn_program* post, uint32_t out_dtype, Epilogue* out, tn_diag*);

}  // namespace tenon::onednn
