// ops/gpu/kernel_spec.h - a kernel, written once: its interface as data, its body in the dialect of macros that
// ops/gpu/dialect/ defines for CUDA C, HIP, OpenCL C and GLSL.
//
// Rules of a body (docs/gpu-kernels.md has them with reasons): buffers, scalars and locals are bare names; no pointers; no
// return before the last barrier; conversions through macros; unsigned literals end in u; the tail is guarded, never padded.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ops/gpu/caps.h"

namespace tenon::gpu {

// `dtype` is a TN_* element type. Buffers hold it as stored; the dialect's TN_LOAD and TN_STORE convert 16-bit floats and bool.
struct BufferSpec { std::string name; uint8_t dtype = 0; bool writable = false; };
struct ScalarSpec { std::string name; uint8_t dtype = 0; };  // TN_U32, TN_I32, TN_F32, TN_U64, TN_I64, TN_F64
struct LocalSpec { std::string name; uint8_t dtype = 0; std::string count; };  // count: an expression of `defines`
struct Define { std::string name; std::string value; };

enum KernelNeed : uint32_t {  // what a rendering must switch on
  kNeedF16 = 1, kNeedF64 = 2, kNeedI64 = 4, kNeedSubgroup = 8, kNeedAtomics = 16, kNeedAtomicF32 = 32, kNeedMatrix = 64,
};

// Equal specs render to equal text; the text is the key of every cache.
struct KernelSpec {
  std::string name;  // a C identifier, also the entry point where the dialect has a free choice
  std::vector<BufferSpec> buffers;   // in binding order
  std::vector<ScalarSpec> scalars;   // one block; see param_layout()
  std::vector<LocalSpec> locals;
  std::vector<Define> defines;       // compile-time constants: tile sizes, widths
  std::string helpers;               // functions before the kernel, in the dialect; by-value parameters only
  std::string body;
  uint32_t group[3] = {64, 1, 1};    // threads of a work-group
  uint32_t subgroup = 0;             // lanes the body was written for; 0 = any
  uint32_t needs = 0;                // KernelNeed bits
  // The body may report a failed element by TN_FAIL(code): the first report wins the device's error word. See recipe.h.
  bool can_fail = false;
};

// Byte offsets of the scalars in the block that a launch passes: each at a multiple of its size, in order; total rounded up
// to 8. The same in all dialects.
struct ParamLayout { std::vector<uint32_t> offset; uint32_t bytes = 0; };
ParamLayout param_layout(const KernelSpec&);

}  // namespace tenon::gpu
