// ops/gpu/dialect/texts.h - the files dialect/*.text as strings; made at build time.
#pragma once

namespace tenon::gpu {

extern const char kText_cuda[], kText_opencl[], kText_glsl[];          // what each language calls things
extern const char kText_convert[], kText_integer[], kText_math_f32[], kText_math_f64[];  // functions, in the dialect itself

}  // namespace tenon::gpu
