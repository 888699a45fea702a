// tools/tenon/common/failure.h - errors of the command itself, in the form of the framework's: what, where, why, try.
//
//   throw Failure(kUsage, "TN-CLI-003", "no op is called \"sofmax\"", "", "81 ops are known", "tenon why softmax ...");
//
// Each id has a section in docs/errors/TN-CLI.md.
#pragma once
#include <exception>
#include <string>

namespace tenon {
class Error;
}

namespace tenon::cli {

class Context;

struct ErrorText {
  std::string id, what, where, why, advice;
};

class Failure : public std::exception {
 public:
  Failure(int exit_code, std::string id, std::string what, std::string where, std::string why, std::string advice)
      : text_{std::move(id), std::move(what), std::move(where), std::move(why), std::move(advice)}, exit_code_(exit_code) {}
  const char* what() const noexcept override { return text_.what.c_str(); }
  const ErrorText& text() const { return text_; }
  int exit_code() const { return exit_code_; }

 private:
  ErrorText text_;
  int exit_code_;
};

ErrorText text_of(const Error& error);
int exit_code_of(const Error& error);  // kMissing for absent devices, drivers and what a policy forbids; else kFailed

// To stderr: four lines, or with --json one object {"error","what","where","why","try"}.
void print_error(const Context& context, const ErrorText& text);
void print_warning(const Context& context, const std::string& text);

}  // namespace tenon::cli
