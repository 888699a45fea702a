#include "tests/errors/golden.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>

namespace tenon::errors {
namespace {

std::vector<std::string>& folders() {
  static std::vector<std::string> all;
  return all;
}

std::string steady(std::string text) {
  for (const std::string& folder : folders())
    for (size_t at; (at = text.find(folder)) != std::string::npos;) text.replace(at, folder.size(), "DIR");
  static const std::regex line("[A-Za-z0-9_]+\\.(cpp|h|hpp):[0-9]+"), address("0x[0-9a-f]{9,}"), build_id("\\b[0-9a-f]{40}\\b");
  text = std::regex_replace(text, line, "FILE:LINE");
  text = std::regex_replace(text, address, "ADDRESS");
  return std::regex_replace(text, build_id, "BUILD_ID");
}

std::string text_of(const Said& s) {
  std::string text;
  for (const auto& [name, part] : {std::pair{"what", &s.what}, std::pair{"why", &s.why}, std::pair{"try", &s.advice}, std::pair{"where", &s.where}})
    if (!part->empty()) text += std::string(name) + ": " + steady(*part) + "\n";
  return text;
}

}  // namespace

void call_it_dir(const std::string& path) { folders().push_back(path); }

Golden::Golden(const std::string& family) : path_(std::string(TENON_GOLDEN_DIR "/") + family + ".txt"), updating_(std::getenv("TENON_GOLDEN_UPDATE") != nullptr) {
  std::ifstream in(path_);
  std::string line, key;
  while (std::getline(in, line)) {
    if (line.starts_with("[TN-") && line.ends_with("]")) key = line.substr(1, line.size() - 2), texts_[key];
    else if (!key.empty() && !line.empty()) texts_[key] += line + "\n";
  }
}

std::string Golden::compare(const Case& c, const Said& s) {
  const std::string key = std::string(c.id) + (*c.label ? " " : "") + c.label;
  if (s.id != c.id) return key + ": " + (s.id.empty() ? "nothing failed" : "the id was " + s.id + "\n" + text_of(s));
  if (!seen_.emplace(key, text_of(s)).second) return key + ": two cases of this name";
  const bool verdict = s.what.empty() && s.id.starts_with("TN-LOAD-");
  if (!verdict && (s.what.empty() || s.why.empty() || s.advice.empty())) return key + ": a part is missing\n" + text_of(s);
  if (s.advice.ends_with("[cut]")) return key + ": the text is cut\n" + text_of(s);
  if (updating_) return "";
  const auto at = texts_.find(key);
  if (at == texts_.end()) return key + ": has no golden text; it said\n" + text_of(s);
  return at->second == seen_.at(key) ? "" : key + ": said\n" + seen_.at(key) + "golden\n" + at->second;
}

std::vector<std::string> Golden::left_over() const {
  std::vector<std::string> keys;
  for (const auto& [key, text] : texts_)
    if (!seen_.count(key)) keys.push_back(key);
  return keys;
}

void Golden::write() const {
  std::ofstream out(path_);
  for (const auto& [key, text] : seen_) out << "[" << key << "]\n" << text << "\n";
}

}  // namespace tenon::errors
