// Measured rates on disk: JSON, one file a device.
#include <tenon/io/file.hpp>
#include <tenon/tenon.hpp>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/failure.h"
#include "tools/tenon/common/json.h"
#include "tools/tenon/common/names.h"
#include "tools/tenon/look/measure.h"

namespace tenon::cli {
namespace {

// A variable that holds a relative path is ignored, as the specification of the base folders says.
std::filesystem::path folder(const char* variable) {
  const char* text = std::getenv(variable);
  return text && *text == '/' ? text : "";
}

std::filesystem::path file_of(const std::string& what) {
  std::filesystem::path base = folder("XDG_CACHE_HOME");
  if (base.empty() && !folder("HOME").empty()) base = folder("HOME") / ".cache";
  if (base.empty()) return {};
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (unsigned char c : what) hash = (hash ^ c) * 1099511628211u;
  char name[48];
  std::snprintf(name, sizeof name, "measured-%016llx.json", static_cast<unsigned long long>(hash));
  return base / "tenon" / name;
}

}  // namespace

std::string measured_identity(Context& context, const Device& device) {
  std::string what;
  const std::vector<tn_plugin_entry> plugins = plugin_entries(context.handle());
  for (const tn_device_entry& d : device_entries(context.handle()))
    if (d.device == device.id()) what = std::string(d.name) + "; " + d.info.name + "; " + d.info.driver;
  for (const tn_plugin_entry& p : plugins)
    if (p.code == 0) what += std::string("; ") + p.id + " " + p.version;  // other kernels, other rates
  return what + "; threads " + std::to_string(tn_threads(context.handle()));
}

Measured load_measured(const std::string& what) {
  Measured out;
  const std::filesystem::path path = file_of(what);
  if (path.empty()) return out;
  const auto text = io::read_file(path.string(), 1 << 20);
  if (!text) return out;
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  const auto words = [&](const char* key) { return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string(); };
  if (!json.is_object() || words("what") != what || !json.contains("caps") || !json["caps"].is_object()) return out;
  out.when = words("when");
  for (const auto& [key, value] : json["caps"].items()) {
    for (uint32_t number = 0; number < 256; ++number) {
      tn_cap cap{number, TN_CAP_F64, TN_FROM_MEASURED, {}};
      if (!value.is_number() || cap_text(cap).key != key) continue;
      cap.v.f = value.get<double>();
      out.caps.push_back(cap);
    }
  }
  return out;
}

std::string measured_path(const std::string& what) {
  const std::filesystem::path path = file_of(what);
  if (path.empty())
    throw Failure(kFailed, "TN-CLI-013", "the measured rates cannot be kept", "tenon caps --measure", "neither XDG_CACHE_HOME nor HOME names a folder", "export HOME=/some/folder");
  return path.string();
}

void save_measured(const std::filesystem::path& path, const std::string& what, const Measured& measured) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);  // a failure shows when the file is written
  JsonRow caps;
  for (const tn_cap& cap : measured.caps) caps.add(cap_text(cap).key, cap.v.f);
  const std::string text = JsonRow().add("what", what).add("when", measured.when).add("caps", caps).text() + "\n";
  throw_if_failed(io::write_file(path.string(), text), Where{"", 0});
}

}  // namespace tenon::cli
