// kernel/program.h - checks on scalar programs, before any plugin sees one.
//
//   tn_diag d;
//   if (validate_program(p, &d) != TN_OK) return report(d);      // d.msg names the instruction and both types
//   interned.opcodes = opcode_mask(p);
//
// Pure functions; nothing is owned; any thread.
#pragma once
#include <tenon/types.h>

namespace tenon::kernel {

// Order (operands name earlier values), types, limits, inputs and slots in range, outputs in range.
// Errors, with ids TN-OP-020 .. TN-OP-029: TN_E_LIMIT (too long, too many inputs or outputs), TN_E_DTYPE (a type does not
// fit its opcode), TN_E_UNSUPPORTED (unknown opcode), TN_E_ARG (everything else).
tn_status validate_program(const tn_program& program, tn_diag* diag);

// Bit per opcode that occurs. Expects a validated program.
uint64_t opcode_mask(const tn_program& program);

// "ADD", "SELECT"; "unknown" for a number that is no opcode.
const char* opcode_name(uint32_t opcode);

}  // namespace tenon::kernel
