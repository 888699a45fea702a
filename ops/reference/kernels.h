// ops/reference/kernels.h - the six primitives as kernel rows of a plugin.
//
//   KernelTable table;   table.init("reference", TN_KIND_CPU, prepare, retire);   // rows "reference.pointwise", ...
//
// Used by the linked reference plugin and by the simulated accelerator, which differ in where a launch runs.
// Owns: a table owns what its rows point to and must not move once initialised.
#pragma once
#include "ops/reference/reference.h"

namespace tenon::reference {

using LaunchFn = tn_status (*)(const tn_kernel_plan*, const tn_launch*);

// What prepare makes; self of the plan is the plugin's instance.
struct Plan {
  tn_kernel_plan head;  // first: the core sees only this
  std::unique_ptr<Prepared> prepared;
  const tn_host* host;
  int64_t low[24], high[24];  // bytes each view may touch around its first element: [low, high)
};
inline constexpr uint32_t kMaxViews = 24;
inline const Plan* plan_of(const tn_kernel_plan* p) { return reinterpret_cast<const Plan*>(p); }

// Builds a plan; fails as `prepare` of reference.h does.
tn_status make_plan(const tn_op& op, uint32_t row, void* self, const tn_host* host, LaunchFn launch, const tn_kernel_plan** out, tn_diag* diag);
void drop_plan(const tn_kernel_plan* plan);

struct KernelTable {
  static constexpr int kCount = 6, kMaxConstraints = 5;
  tn_kernel_info row[kCount];
  tn_constraint constraint[kCount][kMaxConstraints];
  char name[kCount][32];
  // prepare and retire are the plugin's, since they need its instance; supports is the same everywhere.
  void init(const char* prefix, uint32_t device_kind, decltype(tn_kernel_info::prepare) prepare, decltype(tn_kernel_info::retire) retire);
  static uint32_t row_of(uint64_t op_id) { return static_cast<uint32_t>(op_id - 1); }
};

}  // namespace tenon::reference
