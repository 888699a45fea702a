#include "tools/tenon/common/json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace tenon::cli {

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

JsonRow& JsonRow::raw(std::string_view key, std::string_view json) {
  if (!body_.empty()) body_ += ',';
  body_ += json_string(key);
  body_ += ':';
  body_ += json;
  return *this;
}

JsonRow& JsonRow::add(std::string_view key, std::string_view value) { return raw(key, json_string(value)); }

JsonRow& JsonRow::add(std::string_view key, double value) { return raw(key, std::isfinite(value) ? nlohmann::json(value).dump() : "null"); }

JsonRow& JsonRow::add(std::string_view key, const std::vector<JsonRow>& objects) {
  std::string list;
  for (const JsonRow& object : objects) list += (list.empty() ? "" : ",") + object.text();
  return raw(key, "[" + list + "]");
}

JsonRow& JsonRow::add(std::string_view key, const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ",") + json_string(text);
  return raw(key, "[" + list + "]");
}

}  // namespace tenon::cli
