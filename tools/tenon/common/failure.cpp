#include "tools/tenon/common/failure.h"

#include <cstdio>
#include <tenon/core/error.hpp>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/json.h"

namespace tenon::cli {

ErrorText text_of(const Error& error) {
  // The line of source that a library call names is one of this tool's own; what stands behind it is of use.
  std::string where = error.where();
  const size_t comma = where.find(", ");
  where = comma == std::string::npos ? "" : where.substr(comma + 2);
  return {error.id(), error.summary(), where, error.why(), error.advice()};
}

int exit_code_of(const Error& error) {
  switch (error.status()) {
    case TN_E_UNAVAILABLE: case TN_E_DEVICE_LOST: case TN_E_POLICY: return kMissing;
    case TN_E_NOT_FOUND: return error.id().rfind("TN-DEVICE", 0) == 0 ? kMissing : kFailed;
    default: return kFailed;
  }
}

void print_error(const Context& context, const ErrorText& t) {
  if (context.json) {
    const std::string line = JsonRow().add("error", t.id).add("what", t.what).add("where", t.where).add("why", t.why).add("try", t.advice).text();
    std::fprintf(stderr, "%s\n", line.c_str());
    return;
  }
  const char *red = context.color_errors ? "\033[1;31m" : "", *off = context.color_errors ? "\033[0m" : "";
  std::fprintf(stderr, "%serror[%s]:%s %s\n", red, t.id.c_str(), off, t.what.c_str());
  if (!t.where.empty()) std::fprintf(stderr, "  where: %s\n", t.where.c_str());
  if (!t.why.empty()) std::fprintf(stderr, "  why:   %s\n", t.why.c_str());
  if (!t.advice.empty()) std::fprintf(stderr, "  try:   %s\n", t.advice.c_str());
}

void print_warning(const Context& context, const std::string& text) {
  const char *yellow = context.color_errors ? "\033[33m" : "", *off = context.color_errors ? "\033[0m" : "";
  std::fprintf(stderr, "%swarning:%s %s\n", yellow, off, text.c_str());
}

}  // namespace tenon::cli
