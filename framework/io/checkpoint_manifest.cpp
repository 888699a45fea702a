#include "checkpoint_manifest.hpp"

#include <nlohmann/json.hpp>

#include <cctype>
#include <charconv>
#include <cstdio>

namespace tenon::io {
namespace {

using nlohmann::json;
constexpr const char* kFormat = "tenon-checkpoint-1";

bool is_sum(const json& j) {
  if (!j.is_string()) return false;
  const std::string& s = j.get_ref<const std::string&>();
  return s.size() == 64 && s.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool decode_file(const json& j, ManifestFile* out) {
  if (!j.is_object() || j.size() != 2 || !j.contains("sha256") || !j.contains("size")) return false;
  if (!is_sum(j["sha256"]) || !j["size"].is_number_unsigned()) return false;
  *out = {j["sha256"].get<std::string>(), j["size"].get<uint64_t>()};
  return true;
}

}  // namespace

bool plain_name(const std::string& name) {
  if (name.empty() || name.size() > 200 || name[0] == '.') return false;
  for (unsigned char c : name)
    if (!std::isalnum(c) && c != '.' && c != '_' && c != '-') return false;
  return true;
}

std::string step_directory_name(uint64_t step) {
  char name[40];
  std::snprintf(name, sizeof name, "step-%09llu", static_cast<unsigned long long>(step));
  return name;
}

bool parse_step_directory(const std::string& name, uint64_t* step) {
  if (!name.starts_with("step-")) return false;
  const char* end = name.data() + name.size();
  const auto [p, error] = std::from_chars(name.data() + 5, end, *step);
  return error == std::errc() && p == end && step_directory_name(*step) == name;
}

std::string manifest_text(const Manifest& m) {
  json files = json::object();
  for (const auto& [name, file] : m.files) files[name] = {{"sha256", file.sha256}, {"size", file.size_bytes}};
  return json{{"format", kFormat}, {"step", m.step}, {"files", files}}.dump(2) + "\n";
}

Result<Manifest> parse_manifest(const std::string& text, const std::string& where) {
  const auto refuse = [&](const std::string& why) {
    return Status{file_error(21), where + ": manifest damaged", why, "use another checkpoint; this one cannot be trusted", where};
  };
  const json root = json::parse(text, nullptr, false);
  if (root.is_discarded() || !root.is_object()) return refuse("it is not a JSON object");
  if (root.size() != 3 || !root.contains("format") || !root.contains("step") || !root.contains("files"))
    return refuse("it must hold exactly format, step and files");
  if (root["format"] != kFormat) return refuse("its format is not " + std::string(kFormat));
  if (!root["step"].is_number_unsigned() || !root["files"].is_object()) return refuse("step or files has the wrong type");
  Manifest m;
  m.step = root["step"].get<uint64_t>();
  for (const auto& [name, value] : root["files"].items()) {
    if (!plain_name(name)) return refuse("file name " + quote(name) + " is not a plain name");
    if (!decode_file(value, &m.files[name])) return refuse("the entry of " + quote(name) + " must hold exactly sha256 and size");
  }
  return m;
}

}  // namespace tenon::io
