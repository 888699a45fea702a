// kernel/attr_table.h - attribute sets (programs included) interned to ids, with deep copies that outlive the caller's.
//
// A set is immutable and reference counted: plans and graphs keep the sets they use, whatever the table does. Bounded:
// when full, sets nobody asked for since the last sweep go. Threads: any.
#pragma once
#include <tenon/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

namespace tenon::kernel {

class AttrSet {
 public:
  std::span<const tn_attr> attrs() const { return attrs_; }
  const tn_attr* find(uint32_t key) const;
  const tn_program* program(uint32_t key) const;  // nullptr when absent
  uint64_t hash() const { return hash_; }
  bool uses_index() const { return uses_index_; }  // some program holds an INDEX instruction
  bool equals(const AttrSet& other) const;

  // Sorts, checks and copies. Programs are validated and get their opcode mask.
  static tn_status make(std::span<const tn_attr> attrs, std::shared_ptr<const AttrSet>* out, tn_diag* diag);

 private:
  struct ProgramCopy {
    tn_program program;
    std::vector<tn_inst> inst;
  };
  tn_status copy_payload(tn_attr* attr, tn_diag* diag);
  std::vector<tn_attr> attrs_;
  std::vector<std::unique_ptr<std::vector<char>>> payloads_;
  std::vector<std::unique_ptr<ProgramCopy>> programs_;
  uint64_t hash_ = 0;
  bool uses_index_ = false;
};

using AttrRef = std::shared_ptr<const AttrSet>;

class AttrTable {
 public:
  static constexpr uint32_t kLimit = 64 * 1024;
  tn_status intern(std::span<const tn_attr> attrs, uint32_t* out_id, AttrRef* out_set, tn_diag* diag);
  AttrRef get(uint32_t id) const;  // empty when stale; id 0 is the empty set

 private:
  struct Slot {
    AttrRef set;
    uint32_t generation = 0;
    mutable bool recent = true;
  };
  void sweep();
  mutable std::mutex mutex_;
  std::vector<Slot> slots_{1};
  std::vector<uint32_t> free_;
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
};

}  // namespace tenon::kernel
