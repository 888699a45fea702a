// ops/gpu/recipe.h - how an op runs on a device: which kernels, over which pieces of which operands. No API in it.
//
//   Recipe r;
//   if (make_recipe(caps, row, op, &r, &diag) == TN_OK)  // then compile each step's spec and launch them in order
#pragma once
#include <tenon/plugin.h>

#include <memory>
#include <vector>

#include "ops/gpu/kernel_spec.h"

namespace tenon::gpu {

// What a binding of a step reaches: `bytes` from `byte_offset` on of one of the plan's views. Negative strides reach below a
// view's first element: byte_offset may be negative. never more than caps.binding_bytes from an aligned start.
struct Reach { uint32_t view = 0; int64_t byte_offset = 0; uint64_t bytes = 0; };

// A scalar that is known only when the launch happens, written over the step's parameter block at byte `at`.
struct Patch {
  enum Kind : uint8_t {
    Push,         // the low `bytes` bytes of push slot `index`
    ElementStart  // u32 or u64: elements between the start of what is bound for buffer `index` and its Reach's first byte
  } kind = Push;
  uint8_t bytes = 4;
  uint16_t index = 0;
  uint32_t at = 0;
};

struct Step {
  std::shared_ptr<const KernelSpec> spec;
  std::vector<Reach> reach;       // one for each of the spec's buffers
  std::vector<uint8_t> params;    // param_layout(*spec).bytes, constants filled in
  std::vector<Patch> patches;
  uint64_t groups[3] = {1, 1, 1}; // work-groups; each at most caps.max_groups
};

// Steps run in order, each sees what those before wrote. Views: the op's operands, inputs then outputs (n_in + n_out; absent ones
// keep their number and are not reached), then the workspace, when workspace_bytes > 0, as view number n_views.
struct Recipe {
  std::vector<Step> steps;
  uint64_t workspace_bytes = 0;
  uint32_t n_views = 0;
  double flops = 0, bytes = 0;
};

// The kernel rows that a device plugin offers. `name` without the plugin's name: "matmul.tiled".
// flags: TN_KERNEL_*; inplace_mask: inputs that output 0 may alias, with TN_KERNEL_INPLACE.
struct RowInfo { const char* name; uint64_t op_id; int32_t tier; uint32_t flags = TN_KERNEL_DETERMINISTIC, inplace_mask = 0; };
uint32_t row_count();
RowInfo row_info(uint32_t row);
// Constraints of a row on a device with these capabilities, as the core evaluates them; empty where the device can never
// run the row.
std::vector<tn_constraint> row_constraints(uint32_t row, const Caps&);

// errors: TN_E_UNSUPPORTED with the reason (what row_constraints cannot say); TN_E_OOM.
// supports: the same answer without building text. Fast; estimates stay with the core unless `est` is filled.
tn_status row_supports(uint32_t row, const Caps&, const tn_op&, tn_support* est, tn_diag*);
tn_status make_recipe(const Caps&, uint32_t row, const tn_op&, Recipe*, tn_diag*);

// Error word of kernels that can fail: word 0 is 0 or a code of FailCode, words 1..3 describe the element. describe_failure
// fills the diagnosis that queries of the timeline return.
enum FailCode : uint32_t { kFailIndex = 1 };
void describe_failure(const KernelSpec&, const uint32_t word[4], tn_diag*);

}  // namespace tenon::gpu
