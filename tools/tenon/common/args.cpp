#include "tools/tenon/common/args.h"

#include <CLI/CLI.hpp>

namespace tenon::cli {

void Args::flag(const char* name, bool* value, const char* help) { app_.add_flag(name, *value, help); }

void Args::option(const char* name, std::string* value, const char* help) { app_.add_option(name, *value, help)->capture_default_str(); }

void Args::option(const char* name, int64_t* value, const char* help, int64_t low, int64_t high) {
  app_.add_option(name, *value, help)->capture_default_str()->check(CLI::Range(low, high));
}

void Args::option(const char* name, double* value, const char* help) { app_.add_option(name, *value, help)->capture_default_str(); }

// One value each time the option stands there, so that positionals behind it stay positionals.
void Args::option(const char* name, std::vector<std::string>* values, const char* help) {
  app_.add_option(name, *values, help)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void Args::choice(const char* name, std::string* value, const std::vector<std::string>& choices, const char* help) {
  app_.add_option(name, *value, help)->capture_default_str()->check(CLI::IsMember(choices));
}

void Args::positional(const char* name, std::string* value, const char* help, bool required) {
  app_.add_option(name, *value, help)->required(required);
}

void Args::positionals(const char* name, std::vector<std::string>* values, const char* help, bool required) {
  app_.add_option(name, *values, help)->required(required);
}

void Args::pass_through(std::vector<std::string>* rest) {
  app_.allow_extras();
  app_.callback([this_app = &app_, rest] { *rest = this_app->remaining(); });
}

}  // namespace tenon::cli
