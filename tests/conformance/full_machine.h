// tests/conformance/full_machine.h - the machine with every plugin of the build, shared by all tests of the process.
#pragma once
#include <string>
#include <vector>

#include "tools/conformance/machine.h"

namespace tenon::conformance {

Machine& full_machine();  // cpu, onednn, sim
// TENON_TEST_DEVICE, else cpu:0: where tests of one device run.
const char* test_device();
// Both devices of the full machine, or TENON_TEST_DEVICE alone.
std::vector<const char*> test_devices();
std::vector<std::string> plugin_files(const std::vector<std::string>& names);

}  // namespace tenon::conformance
