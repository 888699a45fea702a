// kernel/call.h - launching plans.
#pragma once
#include "kernel/queue.h"

namespace tenon::kernel {

// Runs a plan on a queue of its device. Counts and device were checked. On failure nothing was made.
tn_status run_plan(tn_queue* q, tn_plan* plan, const tn_call_args* args, tn_diag* diag);
// The same for plans whose operands lie on other devices, or that fell back to another device.
tn_status run_moved(tn_queue* q, tn_plan* plan, const tn_call_args* args, tn_diag* diag);
// Copies between any two places; blocks only where host memory is involved. Equal dtype and dims.
tn_status copy_tensor(tn_queue* q, tn_tensor* dst, tn_tensor* src, tn_diag* diag);
// Says that a tensor of an opaque layout cannot be made, read, written, copied or viewed. Returns TN_E_UNSUPPORTED.
tn_status fail_packed(const tn_type& type, tn_diag* diag);

}  // namespace tenon::kernel
