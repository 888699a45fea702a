// kernel/candidates.h - every kernel of every plugin, by op; and the constraints they state, evaluated here as data.
#pragma once
#include <tenon/plugin.h>
#include <tenon/runtime.h>

#include <cstdint>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernel/attr_table.h"
#include "kernel/device.h"

namespace tenon::kernel {

struct KernelRow {
  PluginSlot* plugin = nullptr;
  uint32_t plugin_index = 0;
  const tn_kernel_info* info = nullptr;
  uint32_t number = 0;  // row in the plugin's table
};

// Rows are kept in (plugin id, name) order, so that no choice depends on load order.
class CandidateTable {
 public:
  tn_status add(PluginSlot* slot, tn_diag* diag);  // reads the plugin's table
  void remove(const PluginSlot* slot);
  std::vector<const KernelRow*> rows(uint64_t op_id, uint32_t version) const;
  size_t size() const;

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<uint64_t, std::vector<std::unique_ptr<KernelRow>>> by_op_;
};

// Index of the first constraint that fails, or n_cons when all hold; `reason` then says why in words with values.
uint32_t check_constraints(const tn_kernel_info& kernel, const tn_op& op, const AttrSet& attrs, const Device& device, char* reason, size_t size);

}  // namespace tenon::kernel
