#include "tests/conformance/full_machine.h"

namespace tenon::conformance {

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
