// tools/conformance/constraints.h - a kernel's constraints applied to an op: the kit's own reading of plugin.h, so that a
// fault of the core cannot hide one of a plugin.
#pragma once
#include <tenon/plugin.h>

#include <string>

namespace tenon::conformance {

// The index of the first constraint that does not hold, or -1. `why` gets a text with the values.
int first_failing(const tn_kernel_info& kernel, const tn_op& op, const tn_device_ref& device, std::string* why);

}  // namespace tenon::conformance
