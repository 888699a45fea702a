// backends/cpu/conv/conv.h - rows of the kernel table for direct convolutions.
#pragma once
#include "backends/cpu/core.h"

namespace tenon::cpu {
void add_conv_rows(Rows&);
}  // namespace tenon::cpu
