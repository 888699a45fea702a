// tools/tenon/conformance/find_plugin.h - from the name of a device to the file of the plugin that offers it.
#pragma once
#include <cstdint>
#include <string>

namespace tenon::cli {

class Context;

struct Target {
  std::string file;  // empty: linked into the process
  uint32_t index = 0;
};
// Throws Failure with the devices that there are.
Target plugin_of_device(Context& context, const std::string& device);

}  // namespace tenon::cli
