// The words of the closed list of reasons.
#include <cstddef>
#include <iterator>

#include "tools/tenon/look/checks.h"

namespace tenon::cli {
namespace {
constexpr const char* kReasons[] = {"", "not_built", "library_missing", "driver_too_old", "no_device", "no_permission", "abi_mismatch", "init_failed", "driver_crashed", "driver_timeout"};
}

const char* reason_name(Reason reason) { return kReasons[static_cast<size_t>(reason)]; }

Reason reason_of(const std::string& name) {
  for (size_t i = 1; i < std::size(kReasons); ++i)
    if (name == kReasons[i]) return static_cast<Reason>(i);
  return Reason::none;
}

}  // namespace tenon::cli
