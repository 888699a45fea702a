// kernel/layouts.h - names of opaque layouts, numbered from TN_LAYOUT_OPAQUE on.
//
// A layout is named by the kernels that read it, so two plugins that state one name mean one format, and two with different
// names never collide. Numbers are of one runtime, never reused, and survive the plugin: a tensor may outlive it.
// Bounded: tn_type has one byte for it. Threads: any.
#pragma once
#include <tenon/types.h>

#include <array>
#include <mutex>
#include <string>

namespace tenon::kernel {

class LayoutTable {
 public:
  static constexpr uint32_t kLimit = 256 - TN_LAYOUT_OPAQUE;  // documented bound
  // errors: TN_E_LIMIT when all numbers are given, TN_E_BUG for a malformed name.
  tn_status intern(const char* name, uint8_t* out, tn_diag* diag);
  const char* find(uint32_t layout) const;  // NULL = no such layout; lives as long as the table
  const char* name(uint32_t layout) const { return find(layout) ? find(layout) : "an unknown layout"; }

 private:
  mutable std::mutex mutex_;
  std::array<std::string, kLimit> names_;
  uint32_t count_ = 0;
};

inline bool is_opaque(const tn_type& t) { return t.layout != TN_LAYOUT_STRIDED; }

}  // namespace tenon::kernel
