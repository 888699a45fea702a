// kernel/plan.h - a plan: one op, a composite or a graph, resolved to kernel launches on one device.
//
// Immutable once made; launched from any thread (each queue has its own temporaries). Reference counted.
#pragma once
#include <tenon/plugin.h>
#include <tenon/runtime.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "kernel/candidates.h"
#include "kernel/op_table.h"

namespace tenon::kernel {

// A kernel prepared by its plugin, shared by the plans that use it. Retired when the last one goes.
struct KernelUse {
  const tn_kernel_plan* plan = nullptr;
  const tn_kernel_info* info = nullptr;
  PluginSlot* plugin = nullptr;
  Device* device = nullptr;
  ~KernelUse();
};
using KernelRef = std::shared_ptr<KernelUse>;

// Where a value lies while the plan runs.
struct Place {
  enum Kind : uint8_t { Input, Output, Temp, Constant, TypeOnly, Absent, Zero };
  Kind kind = Absent;
  uint16_t index = 0;
  int64_t offset_bytes = 0;
  tn_type type{};
};

struct Step {
  KernelRef use;
  std::vector<Place> operands;      // inputs, then outputs
  std::vector<tn_push> push;        // literals, or slots of the plan's push
  std::vector<int64_t> dyn;
  uint64_t workspace_bytes = 0;
  std::vector<uint16_t> release;    // temporaries whose last use this step is
  const char* op = "";
  uint32_t op_id = 0;               // table id, and what the op's cost says; for events
  uint64_t flops = 0, bytes = 0;
};

struct PlanOutput {
  Place place;                      // Output: written by a step; others: a view of what it names; Zero: NULL
  uint32_t type_id = 0;
  uint32_t size_class = 0;
};

struct TempInfo {
  uint64_t bytes = 0;
  uint32_t size_class = 0;
};

// Rows of the decision at each step, kept for tn_why_plan.
using DecisionRows = std::vector<tn_candidate>;

}  // namespace tenon::kernel

struct tn_plan {
  std::atomic<uint32_t> refs{1};
  tenon::kernel::Runtime* runtime = nullptr;
  tenon::kernel::Device* device = nullptr;
  uint32_t n_in = 0, n_out = 0, push_bytes = 0;
  tenon::kernel::AttrRef attrs;     // kept: caches name attribute sets by address

  // The common case: one kernel, its operands are whole inputs and outputs. source[v] < n_in: input, else output.
  const tn_kernel_plan* simple = nullptr;
  uint8_t simple_views = 0;
  bool simple_push = false;         // the plan's push goes through as it is; else simple_bits
  bool inplace = false;             // an output may be the very view of an input
  uint8_t source[20] = {};
  std::vector<uint64_t> simple_bits;
  const int64_t* simple_dyn = nullptr;

  std::vector<tenon::kernel::PlanOutput> outputs;
  std::vector<tenon::kernel::Step> steps;
  std::vector<tenon::kernel::TempInfo> temps;
  std::vector<tn_tensor*> constants;          // owned
  std::vector<uint32_t> in_types;             // ids it was prepared for
  std::shared_ptr<std::vector<tenon::kernel::DecisionRows>> decisions = std::make_shared<std::vector<tenon::kernel::DecisionRows>>();
  // Runs on another device than asked: inputs and results are moved. Null when not.
  tenon::kernel::Device* asked = nullptr;
  std::string fallback_cause;
  double est_ns = 0;
  double move_ns = 0;                // beside est_ns, when it runs elsewhere; not of the class, whose model it may be
  uint64_t key = 0;
  ~tn_plan();
};

namespace tenon::kernel {

inline void retain_plan(tn_plan* p) { p->refs.fetch_add(1, std::memory_order_relaxed); }
inline void release_plan(tn_plan* p) {
  if (p && p->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete p;
}

// What a plan is made for.
struct Request {
  const OpEntry* op = nullptr;
  AttrRef attrs;
  Device* device = nullptr;
  uint32_t flags = 0;               // TN_CALL_*
  uint32_t push_bytes = 0;
  uint32_t n_out = 0;               // 0: as many as the op has
  std::vector<tn_type> in;          // dtype 0: absent
  std::vector<bool> type_only;      // operands given by type alone
  bool explain = false;             // cost every row, also an expansion that nothing competes with
};

class Runtime;
// Decides and prepares; may fall back to another device where the policy allows. *out has one reference.
tn_status make_plan(Runtime& rt, const Request& request, tn_plan** out, tn_diag* diag);
// A graph as one plan on one device.
tn_status make_graph_plan(Runtime& rt, tn_builder& graph, Device* device, uint32_t flags, tn_plan** out, tn_diag* diag);

}  // namespace tenon::kernel
