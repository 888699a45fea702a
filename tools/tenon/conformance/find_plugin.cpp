#include "tools/tenon/conformance/find_plugin.h"

#include <sys/wait.h>
#include <unistd.h>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/failure.h"

namespace tenon::cli {
namespace {

// "N path", or "! names of the devices".
std::string answer_of(Context& context, const std::string& device) {
  std::string names;
  for (const tn_device_entry& d : device_entries(context.handle())) {
    if (device == d.name)
      for (const tn_plugin_entry& p : plugin_entries(context.handle()))
        if (p.index == d.plugin) return std::to_string(d.info.index) + " " + p.path;
    names += std::string(names.empty() ? "" : ", ") + d.name;
  }
  return "! " + names;
}

}  // namespace

// Asked in a child process: plugins that are looked at here must not be loaded yet when their conformance begins.
Target plugin_of_device(Context& context, const std::string& device) {
  int ends[2];
  if (pipe(ends) != 0) throw Failure(kFailed, "TN-CLI-011", "no pipe could be made", "", "the system refused", "close other programs");
  const pid_t pid = fork();
  if (pid == 0) {
    std::string text = "!";
    try {
      text = answer_of(context, device);
    } catch (const std::exception& e) {
      text = std::string("! ") + e.what();
    }
    const ssize_t written = write(ends[1], text.data(), text.size());
    _exit(written < 0 ? 1 : 0);
  }
  close(ends[1]);
  std::string text;
  char bytes[512];
  for (ssize_t n; (n = read(ends[0], bytes, sizeof bytes)) > 0;) text.append(bytes, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  const size_t at = text.find(' ');
  if (text.empty() || text[0] == '!' || at == std::string::npos)
    throw Failure(kMissing, "TN-CLI-034", "no plugin offers this device", device, "devices here: " + (at == std::string::npos ? "none" : text.substr(at + 1)), "tenon devices");
  return {text.substr(at + 1), static_cast<uint32_t>(std::stoul(text.substr(0, at)))};
}

}  // namespace tenon::cli
