#include "tools/conformance/lists.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace tenon::conformance {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& name, const std::string& what) { throw std::runtime_error(name + ": " + what); }

std::vector<Exception> entries(const json& file, const char* key, const std::string& name) {
  std::vector<Exception> list;
  if (!file.contains(key)) return list;
  if (!file[key].is_array()) refuse(name, std::string("\"") + key + "\" is no list");
  for (const json& row : file[key]) {
    if (!row.is_object()) refuse(name, std::string("an entry of \"") + key + "\" is no object");
    const Exception e{row.value("check", ""), row.value("tag", ""), row.value("why", "")};
    if (e.check.empty() == e.tag.empty()) refuse(name, std::string("an entry of \"") + key + "\" must name either a check or a tag");
    if (e.why.empty()) refuse(name, std::string("an entry of \"") + key + "\" gives no reason: " + e.check + e.tag);
    list.push_back(e);
  }
  return list;
}

}  // namespace

bool Exception::names(const std::string& id, const std::vector<std::string>& id_tags) const {
  if (!tag.empty()) return std::find(id_tags.begin(), id_tags.end(), tag) != id_tags.end();
  if (!check.empty() && check.back() == '*') return id.compare(0, check.size() - 1, check, 0, check.size() - 1) == 0;
  return id == check;
}

Lists parse_lists(const std::string& text, const std::string& name) {
  Lists lists;
  try {
    const json file = json::parse(text);
    if (!file.is_object()) refuse(name, "the file holds no object");
    for (const auto& [key, value] : file.items())
      if (key != "tags" && key != "never" && key != "not_yet") refuse(name, "\"" + key + "\" is not known; tags, never and not_yet are");
    if (file.contains("tags")) lists.tags = file["tags"].get<std::vector<std::string>>();
    lists.never = entries(file, "never", name);
    lists.not_yet = entries(file, "not_yet", name);
  } catch (const json::exception& e) {
    refuse(name, e.what());
  }
  return lists;
}

Lists read_lists(const std::string& file) {
  std::ifstream in(file);
  if (!in) refuse(file, "cannot be read");
  std::stringstream text;
  text << in.rdbuf();
  return parse_lists(text.str(), file);
}

const Exception* find(const std::vector<Exception>& list, const std::string& id, const std::vector<std::string>& tags) {
  for (const Exception& e : list)
    if (e.names(id, tags)) return &e;
  return nullptr;
}

}  // namespace tenon::conformance
