#include "loader/search.h"

#include <dlfcn.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

namespace tenon::loader {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

// Links resolved, so that a program run through a link finds the plugins beside the library's real place.
std::string folder_of_this_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&folder_of_this_library), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const fs::path real = fs::canonical(info.dli_fname, error);
  return error ? std::string{} : real.parent_path().string();
}

bool has_plugin_name(const fs::path& path) {
  const std::string name = path.filename().string();
  constexpr std::string_view kHead = "libtenon_backend_", kTail = ".so";
  return name.size() > kHead.size() + kTail.size() && name.starts_with(kHead) && name.ends_with(kTail);
}

Candidate refused(const fs::path& path, const std::error_code& error) {
  const Code code = error == std::errc::permission_denied ? Code::Unreadable : Code::NotFound;
  return {path.string(), verdict(code, error.message(), error.value())};
}

// Plugin files of one folder, sorted; or one candidate that says why it cannot be listed.
std::vector<Candidate> list_folder(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (has_plugin_name(it->path())) names.push_back(it->path().filename().string());
  }
  if (error) return {refused(folder, error)};
  std::sort(names.begin(), names.end());
  std::vector<Candidate> found;
  for (const std::string& name : names) found.push_back({(folder / name).string(), std::nullopt});
  return found;
}

std::vector<Candidate> look_at(const Folder& folder) {
  if (!folder.fault.empty()) return {{folder.path, verdict(Code::RelativePath, folder.fault)}};
  std::error_code error;
  const fs::path real = fs::canonical(folder.path, error);
  if (error) {
    if (!folder.asked_for) return {};
    return {named_candidate(folder.path)};
  }
  if (fs::is_directory(real, error)) return list_folder(real);
  return {{real.string(), std::nullopt}};
}

}  // namespace

Environment environment() {
  Environment env;
  env.library_folder = folder_of_this_library();
  env.secure = getauxval(AT_SECURE) != 0;
  if (!env.secure) env.devices = variable("TENON_DEVICES");
  env.plugin_path = variable("TENON_PLUGIN_PATH");
  env.data_home = variable("XDG_DATA_HOME");
  env.cache_home = variable("XDG_CACHE_HOME");
  env.home = variable("HOME");
  return env;
}

std::vector<Folder> split_path_list(const std::string& list, const std::string& variable) {
  std::vector<Folder> folders;
  size_t number = 0;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    Folder folder{list.substr(begin, end - begin), true, {}};
    ++number;
    // An empty entry means the current directory to other programs.
    const char* fault = folder.path.empty() ? "empty" : folder.path[0] != '/' ? "relative" : nullptr;
    if (fault != nullptr) folder.fault = "entry " + std::to_string(number) + " of " + variable + " is " + fault + ": it would follow the current directory";
    folders.push_back(std::move(folder));
    begin = end + 1;
  }
  return folders;
}

std::vector<Folder> standard_folders(const Environment& env) {
  std::vector<Folder> folders;
  if (!env.library_folder.empty()) folders.push_back({env.library_folder + "/tenon/plugins", false, {}});
  if (!env.secure && env.plugin_path) {
    for (Folder& folder : split_path_list(*env.plugin_path, "TENON_PLUGIN_PATH")) folders.push_back(std::move(folder));
  }
  folders.push_back({env.etc, false, {}});
  // The specification of XDG_DATA_HOME says that a relative value is to be ignored.
  if (env.secure) return folders;
  if (env.data_home && env.data_home->starts_with('/')) {
    folders.push_back({*env.data_home + "/tenon/plugins", false, {}});
  } else if (env.home && env.home->starts_with('/')) {
    folders.push_back({*env.home + "/.local/share/tenon/plugins", false, {}});
  }
  return folders;
}

std::vector<Candidate> find_candidates(const std::vector<Folder>& folders) {
  std::vector<Candidate> found;
  std::set<std::string> seen;
  for (const Folder& folder : folders) {
    for (Candidate& candidate : look_at(folder)) {
      if (seen.insert(candidate.path).second) found.push_back(std::move(candidate));
    }
  }
  return found;
}

Candidate named_candidate(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (!error) return {real.string(), std::nullopt};
  std::error_code ignored;
  return refused(fs::absolute(path, ignored).lexically_normal(), error);
}

}  // namespace tenon::loader
