#include "loader/start_verdict.h"

#include <tenon/runtime.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "kernel/status.h"

namespace tenon::loader {
namespace {

std::string cause_of(const tn_diag& diag, tn_status status) {
  std::string text = diag.msg;
  text = text.substr(0, text.find("\ntry: "));
  for (size_t at; (at = text.find("\nwhy: ")) != std::string::npos;) text.replace(at, 6, "; ");
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.empty()) return tn_status_text(status);
  char number[16];
  std::snprintf(number, sizeof number, "-%03u: ", diag.id & 0xFFFF);
  return diag.id ? std::string("TN-") + kernel::family_name(diag.id >> 16) + number + text : text;
}

}  // namespace

Verdict not_started(const tn_diag& diag, tn_status status) {
  return verdict(status == TN_E_UNAVAILABLE ? Code::OpenUnavailable : Code::OpenError, cause_of(diag, status), diag.native_code);
}

}  // namespace tenon::loader
