// JSON by events, so that doubled keys are seen and every value knows its line.
#include <nlohmann/json.hpp>

#include <algorithm>

#include "config.h"

namespace tenon::config {
namespace {

using nlohmann::json;

// Tells through *seen how far the parser has read.
struct CountingIterator {
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  const char* p = nullptr;
  const char** seen = nullptr;
  reference operator*() const { return *p; }
  CountingIterator& operator++() { *seen = ++p; return *this; }
  CountingIterator operator++(int) { CountingIterator old = *this; ++*this; return old; }
  bool operator==(const CountingIterator& o) const { return p == o.p; }
  bool operator!=(const CountingIterator& o) const { return p != o.p; }
};

class Events : public nlohmann::json_sax<json> {
 public:
  Events(const std::string& text, const std::string& name) : begin_(text.data()), seen(text.data()), name_(name) {}
  std::vector<Entry> entries;
  Status status;

 private:
  const char* begin_;

 public:
  const char* seen;

  bool null() override { return put(Unfit{"null"}); }
  bool boolean(bool v) override { return put(v); }
  bool number_integer(number_integer_t v) override { return number(v, static_cast<double>(v)); }
  bool number_unsigned(number_unsigned_t v) override {
    if (v > static_cast<number_unsigned_t>(INT64_MAX)) return number(static_cast<double>(v), static_cast<double>(v));
    return number(static_cast<int64_t>(v), static_cast<double>(v));
  }
  bool number_float(number_float_t v, const string_t&) override { return number(v, v); }
  bool binary(binary_t&) override { return put(Unfit{"binary"}); }
  bool string(string_t& v) override {
    if (!in_list_) return put(v);
    texts_.push_back(v);
    return true;
  }
  bool start_object(size_t) override {
    if (in_list_) return put(Unfit{"an object"});
    if (tables_.size() == 4) return refuse("objects nested too deeply");
    if (!tables_.empty()) entries.push_back({path(), TableMark{}, where(0)});
    tables_.push_back({});
    return true;
  }
  bool key(string_t& name) override {
    Table& table = tables_.back();
    table.key = name;
    if (std::find(table.keys.begin(), table.keys.end(), name) != table.keys.end()) {
      status = {io::conf_error(6), where(0) + ": key given twice", io::quote(path()) + " was set before", "remove one of the two lines", where(0)};
      return false;
    }
    table.keys.push_back(name);
    return true;
  }
  bool end_object() override { tables_.pop_back(); return true; }
  bool start_array(size_t) override {
    if (tables_.empty()) return refuse("the top level must be an object");
    if (in_list_) return put(Unfit{"an array"});
    in_list_ = true, list_unfit_ = "", reals_.clear(), texts_.clear();
    return true;
  }
  bool end_array() override {
    in_list_ = false;
    if (!list_unfit_.empty()) return put(Unfit{"an array holding " + list_unfit_});
    if (!reals_.empty() && !texts_.empty()) return put(Unfit{"an array of mixed types"});
    return reals_.empty() ? put(texts_) : put(reals_);
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& e) override { return refuse(io::quote(e.what(), 160)); }

 private:
  struct Table { std::string key; std::vector<std::string> keys; };

  std::string path() const {
    std::string out;
    for (const Table& table : tables_) out += (out.empty() ? "" : ".") + table.key;
    return out;
  }
  // A number's end is known only from the character after it, which may be on the next line.
  std::string where(std::ptrdiff_t ahead) const {
    const char* end = std::max(begin_, seen - ahead);
    return name_ + ":" + std::to_string(1 + std::count(begin_, end, '\n'));
  }
  bool put(Value value, std::ptrdiff_t ahead = 0) {
    if (in_list_) {  // something a list cannot hold; a nested array is refused at once, for its end would end the list
      list_unfit_ = std::holds_alternative<Unfit>(value) ? std::get<Unfit>(value).found : "true or false";
      return list_unfit_.starts_with("an ") ? refuse("an array holds " + list_unfit_) : true;
    }
    if (tables_.empty()) return refuse("the top level must be an object");
    entries.push_back({path(), std::move(value), where(ahead)});
    return true;
  }
  bool number(Value value, double real) {
    if (!in_list_) return put(std::move(value), 1);
    reals_.push_back(real);
    return true;
  }
  bool refuse(const std::string& why) {
    status = {io::conf_error(5), where(0) + ": not a valid JSON configuration", why, "correct the line", where(0)};
    return false;
  }

  const std::string& name_;
  std::vector<Table> tables_;
  bool in_list_ = false;
  std::string list_unfit_;
  std::vector<double> reals_;
  std::vector<std::string> texts_;
};

}  // namespace

Result<std::vector<Entry>> read_json(const std::string& text, const std::string& name) {
  if (text.find('\0') != std::string::npos)
    return Status{io::conf_error(5), name + ": not a valid JSON configuration", "it holds a NUL byte", "save it as plain UTF-8 text", name};
  Events events(text, name);
  const char* end = text.data() + text.size();
  if (!json::sax_parse(CountingIterator{text.data(), &events.seen}, CountingIterator{end, &events.seen}, &events)) return events.status;
  return std::move(events.entries);
}

}  // namespace tenon::config
