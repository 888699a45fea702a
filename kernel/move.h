// kernel/move.h - running an op on another device than asked, under the policy that allows it: where, and at which cost.
#pragma once
#include <vector>

#include "kernel/select.h"

namespace tenon::kernel {

// Devices that may stand in, in the order of the list: CPU devices that work inline, for opening them starts no driver.
std::vector<Device*> stand_ins(Runtime& rt, const Device* asked);

// Moving the operands there and the results back.
double moving_ns(const Request& request, const std::vector<tn_type>& out_types, const Device& other);

// The plan of the stand-in that is done first, moves included; of two alike the first. TN_E_UNSUPPORTED when none takes it.
// make: makes the plan on request.device. Sets the plan's move_ns.
using MakePlan = tn_status (*)(Runtime& rt, const Request& request, tn_plan** out, tn_diag* diag);
tn_status make_elsewhere(Runtime& rt, const Request& asked, MakePlan make, tn_plan** out);

// For tn_why: the row of the stand-in that would be taken; empty when there is none.
DecisionRows rows_elsewhere(Runtime& rt, const Request& asked, const std::vector<tn_type>& out_types);

}  // namespace tenon::kernel
