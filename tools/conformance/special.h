// tools/conformance/special.h - NaN, infinities, signed zeros, subnormal numbers, limits and ties, at every place of vectors
// of 0 to 70 elements: each opcode of the scalar programs, each monoid, and what only moves bytes.
#pragma once
#include "tools/conformance/subject.h"

namespace tenon::conformance {

void special_values_of(Session& session, Subject& s, const tn_kernel_info& row);

}  // namespace tenon::conformance
