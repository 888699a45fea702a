#include <cstdio>

#include "tools/docgen/op_doc.h"

namespace tenon::docgen {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out + '"';
}

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : separator) + w;
  return text;
}

std::string number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", v);
  return text;
}

std::string attr_line(const AttrDoc& a) {
  return "`" + a.name + "` (" + a.type + (a.required ? ", required" : a.fallback.empty() ? ", optional" : ", default " + a.fallback) + ")";
}

std::string operand_count(int n) { return n < 0 ? "any number of" : std::to_string(n); }

void section(const OpDoc& d, std::string* out) {
  *out += "### " + d.name + "\n" + d.summary + "\n\n";
  if (!d.formula.empty()) *out += "`" + d.formula + "`\n\n";
  *out += "- Operands: " + operand_count(d.n_in) + " in, " + operand_count(d.n_out) + " out" + (d.operands.empty() ? "" : ": " + d.operands) + ".\n";
  if (!d.attrs.empty()) {
    *out += "- Attributes: ";
    for (size_t i = 0; i < d.attrs.size(); ++i) *out += (i ? ", " : "") + attr_line(d.attrs[i]);
    *out += ".\n";
  }
  if (d.scalars_absent) *out += "- Pushed scalars: " + std::to_string(d.scalars) + (d.scalars != d.scalars_absent ? ", or " + std::to_string(d.scalars_absent) + " in place of an absent operand" : "") + ".\n";
  if (!d.semantics.empty()) *out += "- Corner cases: " + d.semantics + "\n";
  *out += "- Element types: " + joined(d.dtypes, ", ") + "; error bound " + number(d.ulp_f32) + " ULP in f32.\n";
  *out += "- Try: `tenon why " + d.example + "`\n\n";
}

}  // namespace

std::string as_include(const std::vector<OpDoc>& docs) {
  std::string out;
  for (const OpDoc& d : docs) {
    out += "{" + quoted(d.name) + ", " + std::to_string(d.id) + ", " + quoted(d.family) + ", " + std::to_string(d.n_in) + ", " + std::to_string(d.n_out) + ",\n ";
    for (const std::string* text : {&d.operands, &d.summary, &d.formula, &d.semantics, &d.example}) out += quoted(*text) + ",\n ";
    out += quoted(joined(d.dtypes, " ")) + ", " + quoted(joined(d.rules, " ")) + ", " + number(d.ulp_f32) + ", " + std::to_string(d.scalars) + ", " + std::to_string(d.scalars_absent) + ", {";
    for (const AttrDoc& a : d.attrs) out += "{" + quoted(a.name) + ", " + quoted(a.type) + ", " + quoted(a.fallback) + ", " + (a.required ? "true" : "false") + "}, ";
    out += "}},\n";
  }
  return out;
}

std::string as_markdown(const std::vector<OpDoc>& docs, const Notes& notes) {
  std::string out =
      "# What the ops compute\n"
      "Made by `tenon_docgen` from the ops' declarations and `abi/include/tenon/ops.def`; a test fails when this page and they differ.\n"
      "`tenon ops NAME` shows one entry. The rules are the same on every backend; a kernel that breaks one is not a candidate for the op.\n\n"
      "## Rules that hold for all ops\n" + notes.general + "\n";
  std::string family;
  for (const OpDoc& d : docs) {
    if (d.family != family) out += "## " + (family = d.family) + "\n\n";
    section(d, &out);
  }
  while (out.size() > 1 && out[out.size() - 2] == '\n') out.pop_back();
  return out;
}

}  // namespace tenon::docgen
