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
#include "kernel/layouts.h"

namespace tenon::kernel {

struct KernelRow {
  PluginSlot* plugin = nullptr;
  uint32_t plugin_index = 0;
  const tn_kernel_info* info = nullptr;
  uint32_t number = 0;  // row in the plugin's table
  const tn_kernel_packed* packed = nullptr;  // the row takes one operand in a layout of its own
  uint8_t layout = TN_LAYOUT_STRIDED;        // its number
};

// Rows are kept in (plugin id, name) order, so that no choice depends on load order.
class CandidateTable {
 public:
  tn_status add(PluginSlot* slot, LayoutTable& layouts, tn_diag* diag);  // reads the plugin's table
  void remove(const PluginSlot* slot);
  std::vector<const KernelRow*> rows(uint64_t op_id, uint32_t version) const;
  std::vector<const KernelRow*> all() const;  // by (plugin id, name)
  size_t size() const;

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<uint64_t, std::vector<std::unique_ptr<KernelRow>>> by_op_;
};

// Index of the first constraint that fails, or n_cons when all hold; `reason` then says why in words with values.
uint32_t check_constraints(const tn_kernel_info& kernel, const tn_op& op, const AttrSet& attrs, const Device& device, char* reason, size_t size);

// Whether every operand is stored as the row reads it; `reason` says which one is not. An opaque layout is for the rows that
// name it, and they take nothing else in that operand's place.
bool check_layouts(const KernelRow& row, const tn_op& op, const LayoutTable& layouts, char* reason, size_t size);

}  // namespace tenon::kernel
