// tools/tenon/abi/verdict.h - the loader's verdict on one file, found out in a child process: what the plugin does there
// cannot end the command.
#pragma once
#include <tenon/runtime.h>

#include <string>

namespace tenon::cli {

// What the loader says of this file alone. A plugin that ends the child, or is not done within the limit, gets the verdict
// of one that does so in the loader's own trial. Throws tenon::Error where no runtime can be made. Before any thread is started.
tn_plugin_entry verdict_in_child(const std::string& file, double limit_s);

}  // namespace tenon::cli
