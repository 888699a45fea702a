// ops/program_rules.cpp - see program_rules.h.
#include "ops/program_rules.h"

namespace tenon::ops {

tn_status check_inputs(const char* op_name, const tn_program& p, const tn_op* op, tn_diag* diag) {
  if (p.n_in != op->n_in)
    return fail(diag, TN_E_ARG, error_id(kArg, 1),
                "%s: operand count differs from the program's\nwhy: %u operands are given, the program reads %u\n"
                "try: give one operand per input of the program", op_name, op->n_in, p.n_in);
  for (uint32_t i = 0; i < p.n_inst; ++i) {
    const tn_inst& inst = p.inst[i];
    if (inst.op != TN_OP_INPUT || inst.type == op->type[inst.a].dtype) continue;
    return fail(diag, TN_E_DTYPE, error_id(kDtype, 2),
                "%s: operand %u has another type than its program reads\nwhy: the operand is %s, the program reads %s\n"
                "try: cast the operand to %s", op_name, inst.a, type_text(op->type[inst.a]).c_str(), dtype_name(inst.type),
                dtype_name(inst.type));
  }
  return TN_OK;
}

double arithmetic_count(const tn_program& p) {
  double n = 0;
  for (uint32_t i = 0; i < p.n_inst; ++i) n += p.inst[i].op > TN_OP_INDEX;
  return n;
}

double element_count(const tn_type& t) {
  double n = 1;
  for (uint32_t i = 0; i < t.rank; ++i) n *= static_cast<double>(t.dim[i]);
  return n;
}

double byte_count(const tn_type& t) {
  double n = dtype_bits(t.dtype) / 8.0;
  for (uint32_t i = 0; i < t.rank; ++i)
    if (t.stride[i] != 0 || t.dim[i] == 0) n *= static_cast<double>(t.dim[i]);
  return n;
}

double traffic(const tn_op& op) {
  double bytes = 0;
  for (uint32_t i = 0; i < uint32_t{op.n_in} + op.n_out; ++i)
    if (op.type[i].dtype) bytes += byte_count(op.type[i]);
  return bytes;
}

}  // namespace tenon::ops
