// backends/onednn/epilogue.h - recognises the scalar programs that the matmul kernels can run as an epilogue.
//
// Form (each part optional, operands of add and max in either order):
//   out = cast(max(accumulator + bias, constant))     bias: INPUT 1, cast to f32 if it is narrow
// A program without a constant that this matcher does not know is refused with the opcode it stopped at.
#pragma once
#include <tenon/plugin.h>

namespace tenon::onednn {

struct Epilogue {
  bool has_bias = false;
  uint32_t bias_dtype = 0;
  bool has_clamp = false;
  uint32_t clamp_slot = 0;  // push slot of the constant, f32
};

// `post` may be null: no epilogue. `out_dtype`: f32 or bf16. errors: TN_E_UNSUPPORTED.
tn_status match_epilogue(const tn_program* post, uint32_t out_dtype, Epilogue* out, tn_diag*);

}  // namespace tenon::onednn
