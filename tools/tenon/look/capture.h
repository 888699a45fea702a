// tools/tenon/look/capture.h - this machine as data.
#pragma once
#include <string>

#include "tools/tenon/common/context.h"
#include "tools/tenon/look/machine_file.h"

namespace tenon::cli {

// Every plugin with its verdict, every device with what it says of itself, every kernel with its conditions. Holds no user,
// host or home folder name, and no serial number. (blocks) while drivers start.
Machine capture_machine(Context& context);
// Writes it to `path` and says so; nothing for "". Throws what the file system says.
void save_capture(Context& context, const std::string& path);

}  // namespace tenon::cli
