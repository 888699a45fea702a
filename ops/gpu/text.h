// ops/gpu/text.h - element types in kernel texts, and what builds a step: buffers, scalars and their values together.
//
// A value in a body has its *register type*: bool for TN_BOOL, tn_uint and int for integers up to 32 bits, tn_ulong and
// tn_long, float, double; the narrow floats are held as their bits in a tn_uint until they are cast.
#pragma once
#include <tenon/ops.h>

#include <string>
#include <vector>

#include "ops/gpu/recipe.h"

namespace tenon::gpu {

inline uint32_t element_bytes(uint32_t dtype) {  // 0: below a byte, or unknown
#define TENON_BYTES_(name, id, bits) case id: return bits / 8;
  switch (dtype) { TN_DTYPES(TENON_BYTES_) default: return 0; }
#undef TENON_BYTES_
}
bool is_narrow_float(uint32_t dtype);       // f16, bf16, f8
bool is_signed_int(uint32_t dtype);
bool is_int(uint32_t dtype);
uint32_t compute_type(uint32_t dtype);      // f32 for narrow floats
const char* register_type(uint32_t dtype);  // "tn_uint"; for parameters and results of functions
const char* local_type(uint32_t dtype);     // "tn_float": for declared locals; keeps GLSL from fusing products and sums
uint32_t needs_of(uint32_t dtype);          // KernelNeed bits of using the type in registers

// `buffer[index]` as a register value, and a statement that stores one.
std::string load_text(uint32_t dtype, const std::string& buffer, const std::string& index);
std::string store_text(uint32_t dtype, const std::string& buffer, const std::string& index, const std::string& value);
// TN_OP_CAST of a register value; `value` may be evaluated more than once, so pass a name.
std::string cast_text(uint32_t from, uint32_t to, const std::string& value);
// A narrow float's bits as float and anything else as it is; and back.
std::string widen_text(uint32_t dtype, const std::string& value);
std::string narrow_text(uint32_t dtype, const std::string& value);

// Attributes of an op; NULL or `fallback` when absent.
const tn_program* program_attr(const tn_op&, uint32_t key);
int64_t int_attr(const tn_op&, uint32_t key, int64_t fallback);

// report() of ops/gpu/diag.h with the id that the status has here: not taken, out of memory, kernel failed.
tn_status refuse(tn_diag*, tn_status status, const char* format, ...) __attribute__((format(printf, 3, 4)));

// Makes one Step. Scalars are added with their value or as a patch; finish() lays out the block.
class StepBuilder {
 public:
  explicit StepBuilder(std::string name);
  KernelSpec spec;  // body, locals, defines, group and needs are set directly

  void scalar_u32(const std::string& name, uint32_t value);
  void scalar_i32(const std::string& name, int32_t value);
  void scalar_u64(const std::string& name, uint64_t value);
  // Returns the name of the scalar that holds push slot `slot` as `dtype`, in register type; each pair is added once.
  std::string push(uint32_t slot, uint32_t dtype);
  // Adds a buffer and, for it, the scalar NAME_start (u32, or u64 if `wide`): element offset of the reach's first byte.
  void buffer(const std::string& name, uint32_t dtype, bool writable, Reach reach, bool wide = false);
  void groups(uint64_t x, uint64_t y = 1, uint64_t z = 1);
  Step finish();

 private:
  struct Value { uint64_t bits; };
  void scalar(const std::string& name, uint8_t dtype, uint64_t bits);
  Step step_;
  std::vector<uint64_t> bits_;                 // of each scalar
  std::vector<std::pair<size_t, Patch>> late_; // scalar index, patch without its place
};

}  // namespace tenon::gpu
