// backends/sim/faults.cpp - what the configuration makes go wrong: a device that is lost, limits that are low.
#include <algorithm>

#include "backends/sim/device.h"
#include "ops/reference/diag.h"

namespace tenon::sim {

tn_status alive(tn_instance* self, uint32_t index, tn_diag* diag) {
  if (!self->health[index].lost.load(std::memory_order_acquire)) return TN_OK;
  return reference::fail(diag, TN_E_DEVICE_LOST, reference::kErrLost, "sim:%u was lost\nwhy: sim.lose_after=%llu, and that launch has come\ntry: go on with another device, or load the plugin again",
                         index, static_cast<unsigned long long>(self->lose_after));
}

void LimitedRows::apply(reference::KernelTable* table, uint64_t max_rank, uint64_t max_operand_bytes) {
  for (int i = 0; i < reference::KernelTable::kCount; ++i) {
    tn_kernel_info& row = table->row[i];
    tn_constraint* end = std::copy(row.cons, row.cons + row.n_cons, constraint[i]);
    if (max_rank < TN_MAX_RANK) *end++ = {TN_ANY_OPERAND, TN_NEED_RANK, 0, 0, 0, static_cast<int64_t>(max_rank)};
    if (max_operand_bytes != 0) *end++ = {TN_ANY_OPERAND, TN_NEED_BYTES, 0, 0, 0, static_cast<int64_t>(max_operand_bytes)};
    row.cons = constraint[i];
    row.n_cons = static_cast<uint32_t>(end - constraint[i]);
  }
}

}  // namespace tenon::sim
