// loader/probe/gather.h - the report of a plugin that is in use.
#pragma once
#include "kernel/plugin_slot.h"
#include "loader/probe/report.h"

namespace tenon::loader {

// Asks the attached plugin for its devices, kernels and ops once more. Threads: the caller holds the runtime's plugin lock, or
// the runtime is its own.
PluginReport gather_report(const kernel::PluginSlot& slot);

}  // namespace tenon::loader
