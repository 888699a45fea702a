// ops/gpu/program.h - scalar programs (tn_program) as statements of a kernel's body.
//
//   ProgramNames names;  names.inputs = {"x", "y"};                // register values, see text.h
//   ProgramText t = program_text(program, names, &step);           // adds push slots to the step's scalars
//   step.spec.body += t.code + store_text(t.out_dtype[0], "out", "i", t.out[0]);
#pragma once
#include <functional>

#include "ops/gpu/text.h"

namespace tenon::gpu {

struct ProgramNames {
  std::string prefix = "v";          // of the locals declared; a body with two programs gives them two prefixes
  std::vector<std::string> inputs;   // value of each input: a name, or an expression free of side effects
  // The index along `axis` (TN_INDEX_FLAT: row-major) as a register value of integer type `dtype`. Needed for TN_OP_INDEX only.
  std::function<std::string(uint32_t axis, uint32_t dtype)> index;
};

struct ProgramText {
  std::string code;                // declarations, one a line, without a block around them
  std::vector<std::string> out;    // names of the values that leave
  std::vector<uint8_t> out_dtype;
  uint32_t needs = 0;              // KernelNeed bits; already set in the step's spec
};

// The program must be one that the core has validated. Sets the step's needs.
ProgramText program_text(const tn_program&, const ProgramNames&, StepBuilder*);

// Masks of 1 << dtype: types computed with (beside bool), and all types that values have.
uint64_t program_arithmetic(const tn_program&);
uint64_t program_types(const tn_program&);
// TN_E_UNSUPPORTED with the reason when the device lacks a type the program computes with.
tn_status program_supported(const tn_program&, const Caps&, tn_diag*);

}  // namespace tenon::gpu
