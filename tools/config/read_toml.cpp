#include <stdexcept>

// toml++ asserts things that a malformed text can break, and in builds without assertions takes them for granted. Here they
// are errors of the text.
namespace tenon::config {
struct BrokenText : std::logic_error {
  using std::logic_error::logic_error;
};
[[noreturn]] static void give_up(const char* expected) { throw BrokenText(expected); }
}  // namespace tenon::config
#undef NDEBUG
#define TOML_ASSERT(expr) ((expr) ? static_cast<void>(0) : tenon::config::give_up(#expr))
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include "config.h"

namespace tenon::config {
namespace {

std::string kind_name(const toml::node& node) {
  if (node.is_date() || node.is_time() || node.is_date_time()) return "a date or time";
  if (node.is_table()) return "a table";
  return node.is_array() ? "an array" : "a value";
}

Value list_value(const toml::array& array) {
  std::vector<double> reals;
  std::vector<std::string> texts;
  for (const toml::node& node : array) {
    if (const auto* text = node.as_string()) texts.push_back(text->get());
    else if (const auto* whole = node.as_integer()) reals.push_back(static_cast<double>(whole->get()));
    else if (const auto* real = node.as_floating_point()) reals.push_back(real->get());
    else return Unfit{"an array holding " + kind_name(node)};
  }
  if (!reals.empty() && !texts.empty()) return Unfit{"an array of mixed types"};
  return reals.empty() ? Value(std::move(texts)) : Value(std::move(reals));
}

Value value_of(const toml::node& node) {
  if (const auto* v = node.as_boolean()) return v->get();
  if (const auto* v = node.as_integer()) return v->get();
  if (const auto* v = node.as_floating_point()) return v->get();
  if (const auto* v = node.as_string()) return v->get();
  if (const auto* v = node.as_array()) return list_value(*v);
  return Unfit{kind_name(node)};
}

void flatten(const toml::table& table, const std::string& prefix, const std::string& name, int depth, std::vector<Entry>* out) {
  for (const auto& [key, node] : table) {
    const std::string path = prefix + std::string(key.str()), where = name + ":" + std::to_string(node.source().begin.line);
    const toml::table* inner = node.as_table();
    if (inner != nullptr && depth < 3) {
      out->push_back({path, TableMark{}, where});
      flatten(*inner, path + ".", name, depth + 1, out);
    } else {
      out->push_back({path, value_of(node), where});
    }
  }
}

}  // namespace

Result<std::vector<Entry>> read_toml(const std::string& text, const std::string& name) {
  try {
    const toml::table root = toml::parse(text);
    std::vector<Entry> entries;
    flatten(root, "", name, 0, &entries);
    return entries;
  } catch (const toml::parse_error& e) {
    const std::string where = name + ":" + std::to_string(e.source().begin.line);
    return Status{io::conf_error(5), where + ": not valid TOML", io::quote(std::string(e.description()), 160), "correct the line; strings need quotes, keys an `=`", where};
  } catch (const BrokenText& e) {
    return Status{io::conf_error(5), name + ": not valid TOML", io::quote(std::string("the parser gave up: ") + e.what(), 160), "correct the text; strings need quotes, keys an `=`", name};
  }
}

}  // namespace tenon::config
