// tools/tenon/common/json.h - one JSON object on one line, keys in the order they were added.
//
//   JsonRow().add("name", "cpu:0").add("cores", 2).add("usable", true).text()  ->  {"name":"cpu:0","cores":2,"usable":true}
//
// Text that is not UTF-8 gets replacement characters; numbers that are not finite become null.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

class JsonRow {
 public:
  JsonRow& add(std::string_view key, std::string_view value);
  JsonRow& add(std::string_view key, const char* value) { return add(key, std::string_view(value)); }
  JsonRow& add(std::string_view key, const std::string& value) { return add(key, std::string_view(value)); }
  JsonRow& add(std::string_view key, double value);
  JsonRow& add(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  template <std::integral T> requires(!std::same_as<T, bool>)
  JsonRow& add(std::string_view key, T value) { return raw(key, std::to_string(value)); }
  JsonRow& add(std::string_view key, const JsonRow& object) { return raw(key, object.text()); }
  JsonRow& add(std::string_view key, const std::vector<JsonRow>& objects);
  JsonRow& add(std::string_view key, const std::vector<std::string>& texts);
  JsonRow& raw(std::string_view key, std::string_view json);  // already JSON
  std::string text() const { return "{" + body_ + "}"; }

 private:
  std::string body_;
};

std::string json_string(std::string_view text);  // quoted and escaped

}  // namespace tenon::cli
