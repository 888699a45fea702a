#include <charconv>
#include <cstdio>

#include "schema.h"

namespace tenon::config {

std::string real_text(double value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";  // TOML: else it would be a whole number
  return text;
}

std::string toml_string(const std::string& raw) {
  std::string out = "\"";
  for (unsigned char c : raw) {
    if (c == '"' || c == '\\') {
      out += '\\', out += static_cast<char>(c);
    } else if (c < 0x20 || c == 0x7F) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\u%04X", c);
      out += hex;
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

// Well-formed UTF-8 by the Unicode table: no overlong forms, no surrogates, nothing above U+10FFFF.
bool valid_utf8(const std::string& text) {
  const auto at = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  for (size_t i = 0; i < text.size();) {
    const unsigned c = at(i), next = at(i + 1);
    size_t more = c < 0x80 ? 0 : c >= 0xC2 && c < 0xE0 ? 1 : c >= 0xE0 && c < 0xF0 ? 2 : c >= 0xF0 && c < 0xF5 ? 3 : 9;
    if (more == 9 || (c == 0xE0 && next < 0xA0) || (c == 0xED && next > 0x9F) || (c == 0xF0 && next < 0x90) || (c == 0xF4 && next > 0x8F)) return false;
    for (++i; more > 0; --more, ++i)
      if ((at(i) & 0xC0) != 0x80) return false;
  }
  return true;
}

std::string value_text(const Field& f, const TrainConfig& c) {
  switch (f.kind) {
    case Kind::Integer: return std::to_string(field_value<int64_t>(f, c));
    case Kind::Real: return real_text(field_value<double>(f, c));
    case Kind::Text: return toml_string(field_value<std::string>(f, c));
    case Kind::Pair: {
      const auto& pair = field_value<std::array<double, 2>>(f, c);
      return "[" + real_text(pair[0]) + ", " + real_text(pair[1]) + "]";
    }
    case Kind::Texts: break;
  }
  std::string list;
  for (const std::string& text : field_value<std::vector<std::string>>(f, c)) list += (list.empty() ? "" : ", ") + toml_string(text);
  return "[" + list + "]";
}

std::string print_toml(const TrainConfig& config) {
  std::string out, table;
  for (const Field& field : fields()) {  // the table lists top-level keys first, as TOML wants them
    const std::string path = field.path;
    const size_t dot = path.find('.');
    if (dot != std::string::npos && path.substr(0, dot) != table) {
      table = path.substr(0, dot);
      out += "\n[" + table + "]\n";
    }
    out += path.substr(dot == std::string::npos ? 0 : dot + 1) + " = " + value_text(field, config) + "\n";
  }
  return out;
}

std::string describe_keys() {
  std::string out;
  for (const Field& f : fields()) {
    std::string line = "  --" + std::string(f.path) + "=" + value_text(f, TrainConfig{});
    line.resize(std::max<size_t>(line.size() + 1, 44), ' ');
    out += line + f.help + (*f.choices ? std::string(*f.help ? ": " : "") + f.choices : "") + "\n";
  }
  return out;
}

}  // namespace tenon::config
