// tests/conformance/full_machine.h - the machine with every plugin of the build, shared by all tests of the process.
#pragma once
#include <string>
#include <vector>

#include "tools/conformance/machine.h"

namespace tenon::conformance {

Machine& full_machine();  // cpu, onednn, sim
std::vector<std::string> plugin_files(const std::vector<std::string>& names);

}  // namespace tenon::conformance
