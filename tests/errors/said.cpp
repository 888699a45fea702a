#include "tests/errors/said.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace tenon::errors {
namespace {

// "<what>\nwhy: ...\ntry: ...\nwhere: ..." in any order of the last three.
Said split(std::string_view text) {
  Said s;
  std::string* to = &s.what;
  for (bool first = true; !text.empty(); first = false) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    for (const auto& [head, part] : {std::pair{std::string_view("why: "), &s.why}, std::pair{std::string_view("try: "), &s.advice}, std::pair{std::string_view("where: "), &s.where}})
      if (!first && line.starts_with(head)) to = part, line.remove_prefix(head.size());
    if (!to->empty()) *to += '\n';
    *to += line;
  }
  return s;
}

}  // namespace

Said said(const tn_diag& diag) {
  Said s = split(std::string_view(diag.msg, std::min<size_t>(diag.len, sizeof diag.msg)));
  s.id = id_text(diag.id, diag.status);
  if (diag.len + 1 == sizeof diag.msg) s.advice += " [cut]";
  return s;
}

Said said(const Error& e) { return {e.id(), e.summary(), e.where(), e.why(), e.advice()}; }

Said said(const io::Status& s) {
  if (s.ok()) return {};
  return {s.id_text(), s.what, s.where, s.why, s.fix};
}

Said said(const tn_plugin_entry& entry) {
  if (entry.code == 0) return {};
  char id[32];
  std::snprintf(id, sizeof id, "TN-LOAD-%03u", entry.code);
  return {id, "", "", entry.cause, ""};
}

Said said_in_cause(const tn_plugin_entry& entry) {
  const std::string cause = entry.cause;
  const size_t colon = cause.find(": "), semicolon = cause.find("; ");
  if (!cause.starts_with("TN-") || colon == std::string::npos || semicolon == std::string::npos) return {"the cause names no id", cause, "", "", ""};
  return {cause.substr(0, colon), cause.substr(colon + 2, semicolon - colon - 2), "", cause.substr(semicolon + 2), "(that of the verdict)"};
}

}  // namespace tenon::errors
