// kernel/op_table.h - op definitions (core's and strangers' alike) and ops derived from them by a rule.
//
// Entries are immutable once published and never move; look-up by id takes no lock. Threads: any.
#pragma once
#include <tenon/runtime.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "kernel/attr_table.h"

namespace tenon::kernel {

struct OpEntry {
  uint32_t id = 0;                 // table id
  const tn_op_def* def = nullptr;  // of the innermost base op
  uint32_t base = 0;               // 0, or the table id this one is derived from
  uint32_t rule = 0;               // TN_RULE_* when derived
  uint64_t seeds = 0, need = 0;
  std::string name;                // "softmax", "vjp(softmax)"
  bool derived() const { return base != 0; }
  bool elementwise() const { return !derived() && (def->flags & TN_DEF_ELEMENTWISE) != 0; }
};

// How many outputs an op has with these attributes (see tn_op_def.n_out).
uint32_t output_count(const tn_op_def& def, const AttrSet& attrs);
// Bit of operand i in a mask whose last bit stands for all that follow.
inline bool in_mask(uint64_t mask, uint32_t i) { return (mask >> (i < 63 ? i : 63) & 1) != 0; }

class OpTable {
 public:
  static constexpr uint32_t kLimit = 1u << 16;
  ~OpTable();
  tn_status define(const tn_op_def* def, uint32_t plugin, uint32_t* out_id, tn_diag* diag);
  tn_status derive(uint32_t op, const tn_derive& how, uint32_t* out_id, tn_diag* diag);
  const OpEntry* get(uint32_t id) const;                                        // nullptr when unknown
  const OpEntry* find(const char* name, uint32_t version, tn_diag* diag) const;  // newest for version 0
  const OpEntry* find(uint64_t op_id, uint32_t version) const;
  std::vector<const OpEntry*> base_ops() const;
  // The ops the core itself needs, by role, so that no op is named here: sum of two values, dense copy.
  void set_roles(uint64_t accumulate_op, uint64_t copy_op) { accumulate_ = accumulate_op, copy_ = copy_op; }
  uint64_t accumulate_op() const { return accumulate_; }
  uint64_t copy_op() const { return copy_; }

 private:
  static constexpr uint32_t kChunk = 256;
  using Chunk = std::array<OpEntry, kChunk>;
  OpEntry* append(tn_diag* diag);
  mutable std::mutex mutex_;
  std::array<std::atomic<Chunk*>, kLimit / kChunk> chunks_{};
  std::atomic<uint32_t> count_{1};
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> by_id_;            // (op_id, version)
  std::map<std::pair<std::string, uint32_t>, uint32_t, std::less<>> by_name_;  // (name, version), the first to take it
  std::map<std::tuple<uint32_t, uint32_t, uint64_t, uint64_t>, uint32_t> by_rule_;
  uint64_t accumulate_ = 0, copy_ = 0;
};

}  // namespace tenon::kernel
