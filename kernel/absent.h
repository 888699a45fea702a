// kernel/absent.h - why a device that was asked for by its name is not in the list.
#pragma once
#include <tenon/runtime.h>

#include <string>
#include <vector>

namespace tenon::kernel {

class Runtime;

// Verdicts of the loader that mean more here than "refused"; it checks that these are its numbers.
namespace verdicts {
inline constexpr uint32_t kMissingDependency = 9, kOpenUnavailable = 18;  // something is absent, not broken
inline constexpr uint32_t kDuplicateOf = 15, kUnloaded = 22;              // another entry, or the device list, says more
}  // namespace verdicts

// The error for `name` ("cuda:0"): what befell the plugin that would offer it, where one of that name was found, or which
// devices there are. TN_E_UNAVAILABLE: something it needs is absent. TN_E_FAILED: it is there and broken. TN_E_NOT_FOUND:
// nothing of that name. Called under no lock.
tn_status absent_device(Runtime& runtime, const std::vector<tn_device_entry>& devices, const std::string& name, tn_diag* diag);

}  // namespace tenon::kernel
