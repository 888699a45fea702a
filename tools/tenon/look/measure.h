// tools/tenon/look/measure.h - a device's rates, measured through the public interface, and where they are kept.
#pragma once
#include <filesystem>
#include <string>
#include <tenon/core/runtime.hpp>
#include <tenon/types.h>
#include <vector>

#include "tools/tenon/common/context.h"

namespace tenon::cli {

struct Measured {
  std::vector<tn_cap> caps;             // provenance TN_FROM_MEASURED
  std::vector<std::string> left_out;    // "matmul_f16: TN-SHAPE-...": what the device does not compute itself, and why
  std::string when;                     // "2026-11-30"
};

// (blocks) for a few seconds. Medians of rates that ops of this device reach through whatever kernels win here.
Measured measure(const Device& device);

// Kept in $XDG_CACHE_HOME/tenon, else ~/.cache/tenon, one file a device; `what` names hardware, driver and plugin, and a file
// for another `what` is not read. Reading never fails: a file that is absent or damaged is none. The others throw Failure.
Measured load_measured(const std::string& what);
std::string measured_path(const std::string& what);
void save_measured(const std::filesystem::path& path, const std::string& what, const Measured& measured);
std::string measured_identity(Context& context, const Device& device);

}  // namespace tenon::cli
