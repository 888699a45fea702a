#include <algorithm>
#include <charconv>

#include "schema.h"

namespace tenon::config {
namespace {

template <class T>
bool parse(const std::string& text, T* out) {
  const char* end = text.data() + text.size();
  const auto [p, error] = std::from_chars(text.data(), end, *out);
  return error == std::errc() && p == end && !text.empty();
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; !text.empty() && at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

// What the flag's text is meant as; when it does not fit, the text itself, which apply_entries() then refuses by name.
Value interpret(const Field* field, const std::string& text) {
  int64_t whole = 0;
  double real = 0;
  if (field == nullptr || field->kind == Kind::Text) return text;
  if (field->kind == Kind::Texts) return split(text);
  if (field->kind == Kind::Pair) {
    std::vector<double> reals;
    for (const std::string& part : split(text)) {
      if (!parse(part, &real)) return text;
      reals.push_back(real);
    }
    return reals;
  }
  if (parse(text, &whole)) return whole;
  if (parse(text, &real)) return real;
  return text;
}

}  // namespace

Result<std::vector<Entry>> read_flags(const std::vector<std::string>& flags) {
  std::vector<Entry> entries;
  for (const std::string& flag : flags) {
    const size_t equals = flag.find('=');
    if (!flag.starts_with("--") || equals == std::string::npos || equals == 2)
      return Status{io::conf_error(8), io::quote(flag) + ": flag not understood", "a setting has the form --key=value", "write it as --key=value, for example --epochs=2", "command line"};
    std::string path = flag.substr(2, equals - 2);
    std::replace(path.begin(), path.end(), '-', '_');
    entries.push_back({path, interpret(find_field(path), flag.substr(equals + 1)), "flag " + io::quote(flag)});
  }
  return entries;
}

}  // namespace tenon::config
