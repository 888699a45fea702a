#include "tests/conformance/full_machine.h"

#include <cstdlib>

namespace tenon::conformance {

const char* test_device() {
  const char* name = std::getenv("TENON_TEST_DEVICE");
  return name != nullptr && *name != 0 ? name : "cpu:0";
}

std::vector<const char*> test_devices() {
  if (std::getenv("TENON_TEST_DEVICE") != nullptr) return {test_device()};
  return {"cpu:0", "sim:0"};
}

std::vector<std::string> plugin_files(const std::vector<std::string>& names) {
  std::vector<std::string> files;
  for (const std::string& name : names) files.push_back(std::string(TENON_CONFORMANCE_PLUGINS) + "/libtenon_backend_" + name + ".so");
  return files;
}

Machine& full_machine() {
#if defined(TENON_CONFORMANCE_ONEDNN)
  static Machine m(plugin_files({"cpu", "onednn", "sim"}));
#else
  static Machine m(plugin_files({"cpu", "sim"}));
#endif
  return m;
}

}  // namespace tenon::conformance
