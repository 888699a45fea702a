// tools/tenon/look/measure.h - a device's rates, measured through the public interface. The runtime keeps them (tn_rates_keep).
#pragma once
#include <string>
#include <tenon/core/runtime.hpp>
#include <tenon/types.h>
#include <vector>

namespace tenon::cli {

struct Measured {
  std::vector<tn_cap> caps;             // provenance TN_FROM_MEASURED
  std::vector<std::string> left_out;    // "matmul_f16: TN-SHAPE-...": what the device does not compute itself, and why
};

// (blocks) for a few seconds. Medians of rates that ops of this device reach through whatever kernels win here.
Measured measure(const Device& device);

}  // namespace tenon::cli
