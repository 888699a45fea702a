// tools/tenon/common/args.h - declaring the options of one command. A thin layer over CLI11 that keeps its header out of
// the commands' files. Pointers must live until the command has run; what they hold before is the default, shown by --help.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tenon::cli {

class Args {
 public:
  explicit Args(CLI::App& app) : app_(app) {}

  void flag(const char* name, bool* value, const char* help);
  void option(const char* name, std::string* value, const char* help);
  void option(const char* name, int64_t* value, const char* help, int64_t low = INT64_MIN, int64_t high = INT64_MAX);
  void option(const char* name, double* value, const char* help);
  void option(const char* name, std::vector<std::string>* values, const char* help);  // may be given several times
  void choice(const char* name, std::string* value, const std::vector<std::string>& choices, const char* help);
  void positional(const char* name, std::string* value, const char* help, bool required = true);
  void positionals(const char* name, std::vector<std::string>* values, const char* help, bool required = true);
  // Everything that is not understood ("--optimizer.lr=0.1") lands in `rest` instead of being an error.
  void pass_through(std::vector<std::string>* rest);
  CLI::App& app() { return app_; }

 private:
  CLI::App& app_;
};

}  // namespace tenon::cli
