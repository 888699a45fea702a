#include <tenon/io/file.hpp>

#include <cmath>
#include <map>
#include <sstream>

#include "schema.h"

namespace tenon::config {
namespace {

struct Describe {
  std::string operator()(const TableMark&) const { return "a table"; }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return "the whole number " + std::to_string(v); }
  std::string operator()(double v) const { return "the number " + real_text(v); }
  std::string operator()(const std::string& v) const { return "the text " + io::quote(v); }
  std::string operator()(const std::vector<double>& v) const { return "a list of " + std::to_string(v.size()) + " numbers"; }
  std::string operator()(const std::vector<std::string>& v) const { return v.empty() ? "an empty list" : "a list of " + std::to_string(v.size()) + " texts"; }
  std::string operator()(const Unfit& v) const { return v.found; }
};

const char* wanted(Kind kind) {
  switch (kind) {
    case Kind::Integer: return "a whole number";
    case Kind::Real: return "a number";
    case Kind::Text: return "a text";
    case Kind::Pair: return "a list of two numbers";
    case Kind::Texts: return "a list of texts";
  }
  return "";
}

const char* sample(Kind kind) {
  switch (kind) {
    case Kind::Integer: return "128";
    case Kind::Real: return "0.001";
    case Kind::Text: return "\"adam\"";
    case Kind::Pair: return "[0.9, 0.999]";
    case Kind::Texts: return "[\"linear 10\"]";
  }
  return "";
}

Status unknown_key(const Entry& e) {
  const std::string near = nearest_key(e.path);
  return {io::conf_error(1), e.where + ": unknown key " + io::quote(e.path), "no setting has this name", near.empty() ? "run `tenon train --help` for the list of keys" : "write " + near, e.where};
}

Status wrong_type(const Field& f, const Entry& e) {
  return {io::conf_error(2), e.where + ": wrong type for " + f.path, std::string("it must be ") + wanted(f.kind) + "; found " + std::visit(Describe{}, e.value),
          std::string("write it like ") + f.path + " = " + sample(f.kind), e.where};
}

Status check_range(const Field& f, const Entry& e, double v) {
  if (v >= f.low && v <= f.high) return {};  // false for NaN
  const auto text = [&](double x) { return f.kind == Kind::Integer ? std::to_string(static_cast<int64_t>(x)) : real_text(x); };
  return {io::conf_error(3), e.where + ": " + f.path + " out of range", "it is " + (f.kind == Kind::Integer ? std::visit(Describe{}, e.value) : real_text(v)) + "; allowed are " + text(f.low) + " to " + text(f.high),
          "choose a value in the range", e.where};
}

Status check_text(const Field& f, const Entry& e, const std::string& text) {
  if (!valid_utf8(text) || text.find('\0') != std::string::npos)
    return {io::conf_error(3), e.where + ": " + f.path + " is not plain text", io::quote(text) + " holds a NUL byte or is not UTF-8", "use UTF-8 text", e.where};
  std::istringstream choices(f.choices);
  std::string choice, list;
  while (choices >> choice) {
    if (choice == text) return {};
    list += (list.empty() ? "" : ", ") + choice;
  }
  if (list.empty()) return {};
  return {io::conf_error(4), e.where + ": " + f.path + " is not one of the choices", "it is " + io::quote(text) + "; choices are " + list, "pick one of the choices", e.where};
}

Status set_number(const Field& f, const Entry& e, void* to) {
  const auto* whole = std::get_if<int64_t>(&e.value);
  const auto* real = std::get_if<double>(&e.value);
  if (f.kind == Kind::Integer) {
    if (whole == nullptr) return wrong_type(f, e);
    Status status = check_range(f, e, static_cast<double>(*whole));
    if (status.ok()) *static_cast<int64_t*>(to) = *whole;
    return status;
  }
  if (whole == nullptr && real == nullptr) return wrong_type(f, e);
  const double v = real ? *real : static_cast<double>(*whole);
  Status status = check_range(f, e, v);
  if (status.ok()) *static_cast<double*>(to) = v;
  return status;
}

Status set_pair(const Field& f, const Entry& e, void* to) {
  const auto* list = std::get_if<std::vector<double>>(&e.value);
  if (list == nullptr || list->size() != 2) return wrong_type(f, e);
  for (double v : *list)
    if (Status status = check_range(f, e, v); !status.ok()) return status;
  *static_cast<std::array<double, 2>*>(to) = {(*list)[0], (*list)[1]};
  return {};
}

Status set_texts(const Field& f, const Entry& e, void* to) {
  const auto* list = std::get_if<std::vector<std::string>>(&e.value);
  if (list == nullptr) return wrong_type(f, e);
  for (const std::string& text : *list)
    if (Status status = check_text(f, e, text); !status.ok()) return status;
  *static_cast<std::vector<std::string>*>(to) = *list;
  return {};
}

Status set(const Field& f, const Entry& e, TrainConfig* config) {
  void* to = f.at(*config);
  switch (f.kind) {
    case Kind::Integer:
    case Kind::Real: return set_number(f, e, to);
    case Kind::Pair: return set_pair(f, e, to);
    case Kind::Texts: return set_texts(f, e, to);
    case Kind::Text: break;
  }
  const auto* text = std::get_if<std::string>(&e.value);
  if (text == nullptr) return wrong_type(f, e);
  Status status = check_text(f, e, *text);
  if (status.ok()) *static_cast<std::string*>(to) = *text;
  return status;
}

bool has_keys(const std::vector<Entry>& entries, const std::string& table) {
  for (const Entry& e : entries)
    if (e.path.starts_with(table + ".")) return true;
  return false;
}

}  // namespace

Status apply_entries(const std::vector<Entry>& entries, TrainConfig* config) {
  std::map<std::string, std::string> seen;  // path -> where
  for (const Entry& e : entries) {
    const Field* field = find_field(e.path);
    // Of an unknown table with keys, the first key tells more: both parts of its name help the suggestion.
    if (field == nullptr && !is_table(e.path) && std::holds_alternative<TableMark>(e.value) && has_keys(entries, e.path)) continue;
    if (field == nullptr && !is_table(e.path)) return unknown_key(e);
    if (field == nullptr && std::holds_alternative<TableMark>(e.value)) continue;
    if (field == nullptr)
      return {io::conf_error(2), e.where + ": wrong type for " + e.path, "it must be a table of settings; found " + std::visit(Describe{}, e.value),
              "write [" + e.path + "] and its keys below it", e.where};
    const auto [first, fresh] = seen.emplace(e.path, e.where);
    if (!fresh) return {io::conf_error(6), e.where + ": key given twice", e.path + " was set before by " + first->second, "remove one of the two", e.where};
    Status status = set(*field, e, config);
    if (!status.ok()) return status;
  }
  // Layers alone are enough: the preset steps back unless it was asked for too.
  if (seen.count("model.layers") && !seen.count("model.preset") && !config->model.layers.empty()) config->model.preset = "";
  if (seen.count("model.preset") && !seen.count("model.layers") && !config->model.preset.empty()) config->model.layers.clear();
  return {};
}

Status check(const TrainConfig& c) {
  const auto contradiction = [](std::string what, std::string why, std::string fix) { return Status{io::conf_error(7), std::move(what), std::move(why), std::move(fix), "resolved configuration"}; };
  if (!c.model.preset.empty() && !c.model.layers.empty())
    return contradiction("model.preset and model.layers exclude each other", "preset is " + io::quote(c.model.preset) + " and " + std::to_string(c.model.layers.size()) + " layers are given", "remove one of the two");
  if (c.model.preset.empty() && c.model.layers.empty()) return contradiction("no model", "model.preset is empty and model.layers too", "set model.preset to cnn, mlp or lenet");
  if (!c.model.preset.empty() && c.model.preset != "cnn" && c.model.preset != "mlp" && c.model.preset != "lenet")
    return {io::conf_error(4), "model.preset is not one of the choices", "it is " + io::quote(c.model.preset) + "; choices are cnn, mlp, lenet", "pick one of the choices", "resolved configuration"};
  if (c.data.dir.empty()) return contradiction("no data", "data.dir is empty", "set data.dir to the folder with the data files");
  if (c.checkpoint.every > 0 && c.checkpoint.dir.empty())
    return contradiction("checkpoint.every without checkpoint.dir", "every is " + std::to_string(c.checkpoint.every) + " and dir is empty", "set checkpoint.dir");
  return {};
}

Result<TrainConfig> load(const std::vector<std::string>& paths, const std::vector<std::string>& flags) {
  TrainConfig config;
  Status status;
  if (paths.size() > 1)
    return Status{io::conf_error(8), "more than one configuration file", std::to_string(paths.size()) + " were given", "put the settings into one file; flags override it", "command line"};
  for (const std::string& path : paths) {
    Result<std::string> text = io::read_file(path, 1 << 20);
    if (!text) return text.status();
    const bool json = path.ends_with(".json") || (!path.ends_with(".toml") && text->find_first_not_of(" \t\r\n") != std::string::npos && (*text)[text->find_first_not_of(" \t\r\n")] == '{');
    Result<std::vector<Entry>> entries = json ? read_json(*text, path) : read_toml(*text, path);
    if (!entries) return entries.status();
    status = apply_entries(*entries, &config);
    if (!status.ok()) return status;
  }
  Result<std::vector<Entry>> entries = read_flags(flags);
  if (!entries) return entries.status();
  status = apply_entries(*entries, &config);
  if (status.ok()) status = check(config);
  if (!status.ok()) return status;
  return config;
}

}  // namespace tenon::config
