#include "tools/tenon/commands.h"

namespace tenon::cli {

// Weak: the address of a command that is not linked is null.
#define X(name) extern const Command command_##name __attribute__((weak));
#include "tools/tenon/commands.def"
#undef X

std::vector<const Command*> commands() {
  std::vector<const Command*> linked;
  for (const Command* command : {
#define X(name) &command_##name,
#include "tools/tenon/commands.def"
#undef X
       })
    if (command != nullptr) linked.push_back(command);
  return linked;
}

}  // namespace tenon::cli
