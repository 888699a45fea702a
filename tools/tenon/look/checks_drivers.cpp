// The checks of hardware and drivers, tied to this machine.
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tools/tenon/common/context.h"
#include "tools/tenon/look/drivers.h"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

// libexec/tenon/tenon-drivers of the installation that this command belongs to.
std::string helper(const Context& context) {
  std::error_code error;
  fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) self = fs::weakly_canonical(context.program, error);
  return (self.parent_path() / TENON_DRIVERS_FROM_COMMAND).lexically_normal().string();
}

std::string folder_of_answers(const Place& place) {
  const auto full = [&](const char* name) {
    const auto at = place.variables.find(name);
    return at != place.variables.end() && !at->second.empty() && at->second[0] == '/' ? at->second : std::string();
  };
  if (!full("XDG_CACHE_HOME").empty()) return full("XDG_CACHE_HOME") + "/tenon";
  return full("HOME").empty() ? "" : full("HOME") + "/.cache/tenon";
}

// Drivers keep files; a look at them leaves none. What they would say about their own folders, survey() says.
struct Scratch {
  std::string path;
  Scratch() {
    char name[] = "/tmp/tenon-drivers-XXXXXX";
    if (mkdtemp(name) != nullptr) path = name;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
  std::vector<std::string> variables() const {
    std::vector<std::string> all{"MESA_SHADER_CACHE_DISABLE=true", "CUDA_CACHE_DISABLE=1"};
    if (!path.empty()) all.push_back("POCL_CACHE_DIR=" + path);
    return all;
  }
};

}  // namespace

void check_drivers(Context& context, const DriverOptions& options, Findings* out) {
  const Place place = Place::here();
  const Survey seen = survey(place);
  AskOptions ask{helper(context), folder_of_answers(place), seen.identity, static_cast<uint32_t>(options.timeout_s * 1000), options.again, getauxval(AT_SECURE) != 0, {}};
  std::vector<DriverAnswer> said;
  if (access(ask.program.c_str(), X_OK) == 0) {
    const Scratch scratch;
    ask.variables = scratch.variables();
    said = ask_drivers(jobs_of(seen), ask);
  } else {
    out->push_back({"drivers", options.required.empty() ? State::warning : State::missing, !options.required.empty(), "not asked", ask.program + " is absent from this installation", "reinstall Tenon, then run `tenon doctor` again"});
  }
  Shown shown{{}, options.required};
  try {
    for (const tn_device_entry& d : device_entries(context.handle()))
      if (d.verdict == 0) shown.used.push_back(d.name);
  } catch (const std::exception&) {  // a runtime that does not start is among the findings already
  }
  explain_drivers(seen, said, Person::here(), shown, out);
}

}  // namespace tenon::cli
