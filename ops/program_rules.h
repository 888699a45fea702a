// ops/program_rules.h - what pointwise and reduce share about the programs they are given.
#pragma once
#include "ops/emit.h"

namespace tenon::ops {

// Every INPUT of the program has the dtype of its operand, and there are as many operands. The core has already checked
// the program itself. TN_E_ARG (count, TN-ARG-001), TN_E_DTYPE (TN-DTYPE-002).
tn_status check_inputs(const char* op_name, const tn_program& p, const tn_op* op, tn_diag* diag);

inline uint32_t output_type(const tn_program& p, uint32_t k) { return p.inst[p.out[k]].type; }

// Instructions that compute, for cost.
double arithmetic_count(const tn_program& p);
double element_count(const tn_type& t);
double byte_count(const tn_type& t);  // of the elements; a broadcast (stride 0) axis counts once
// Bytes of all operands and outputs of an op with its types filled in.
double traffic(const tn_op& op);

}  // namespace tenon::ops
