#include "backends/cpu/constraints.h"

namespace tenon::cpu {

tn_status check_constraints(const tn_constraint* cons, size_t n, const tn_op& op, tn_support* out, tn_diag* diag) {
  for (size_t c = 0; c < n; ++c)
    for (uint32_t k = 0; k < uint32_t{op.n_in} + op.n_out; ++k) {
      const tn_type& t = op.type[k];
      if (t.dtype == 0 || (cons[c].operand != TN_ANY_OPERAND && cons[c].operand != k)) continue;
      if (cons[c].kind == TN_NEED_DTYPE && !(cons[c].mask >> t.dtype & 1)) return decline(out, diag, 90, "cpu: operand %u has element type %u\nwhy: a constraint of the kernel names others\ntry: another kernel", k, t.dtype);
      if (cons[c].kind == TN_NEED_LAYOUT && !(t.layout < 64 && cons[c].mask >> t.layout & 1))
        return decline(out, diag, 91, "cpu: operand %u has layout %u\nwhy: a constraint of the kernel names others\ntry: another kernel", k, t.layout);
    }
  return TN_OK;
}

}  // namespace tenon::cpu
