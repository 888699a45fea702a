// The table of settings that reading, checking, printing and help share; internal to tools/config.
#pragma once
#include "config.h"

#include <span>

namespace tenon::config {

enum class Kind { Integer, Real, Text, Pair /* two reals */, Texts };

struct Field {
  const char* path;
  const char* help;
  Kind kind;
  void* (*at)(TrainConfig&);
  double low = 0, high = 0;      // inclusive, for numbers
  const char* choices = "";      // "a b c" for texts that are one of these
};

std::span<const Field> fields();
const Field* find_field(const std::string& path);
bool is_table(const std::string& path);        // "optimizer"
template <class T>
const T& field_value(const Field& field, const TrainConfig& config) { return *static_cast<const T*>(field.at(const_cast<TrainConfig&>(config))); }

std::string real_text(double value);           // shortest text that reads back the same, always with '.' or 'e'
std::string toml_string(const std::string& raw);
std::string value_text(const Field& field, const TrainConfig& config);
bool valid_utf8(const std::string& text);

}  // namespace tenon::config
