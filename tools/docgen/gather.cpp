#include <algorithm>
#include <cctype>
#include <cstdio>
#include <regex>

#include "ops/op.h"
#include "tools/docgen/op_doc.h"

namespace tenon::docgen {
namespace {

std::string dtype_name(uint32_t dtype) {
  static constexpr struct { uint32_t number; const char* name; } kNames[] = {
#define DTYPE(name, number, bits) {number, #name + 3},
      TN_DTYPES(DTYPE)
#undef DTYPE
  };
  std::string text;
  for (const auto& n : kNames)
    if (n.number == dtype)
      for (const char* c = n.name; *c; ++c) text += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  return text;
}

// Attributes whose name says that they hold a dtype are given by its name.
std::string type_text(const tn_attr_def& a) {
  switch (a.type) {
    case TN_ATTR_I64: return a.key == TN_KEY_DTYPE ? "dtype" : "integer";
    case TN_ATTR_F64: return "number";
    case TN_ATTR_STRING: return "text";
    case TN_ATTR_I64S: return "integers";
    case TN_ATTR_F64S: return "numbers";
    case TN_ATTR_PROGRAM: return "program";
    default: return "type";
  }
}

std::string fallback_text(const tn_attr_def& a) {
  // Without a length and zero: left out means "none", not 0.
  if (a.flags & TN_ATTR_REQUIRED || a.fallback.type != a.type || (a.fallback.len == 0 && a.fallback.v.i == 0)) return "";
  char text[64];
  if (a.type == TN_ATTR_I64) std::snprintf(text, sizeof text, "%lld", static_cast<long long>(a.fallback.v.i));
  else if (a.type == TN_ATTR_F64) std::snprintf(text, sizeof text, "%g", a.fallback.v.f);
  else return "";
  return text;
}

// Examples of the declarations, in the one form that `tenon why` prints: NAME SPECS --attr key=value.
std::string example_text(const ops::OpDecl& decl) {
  std::string text = decl.example ? decl.example : "";
  const std::string name = decl.def.name;
  // Programs have no form in declarations; `tenon why` takes the name of a scalar op for one.
  if (text.empty() && name == "pointwise") text = "f32[64] f32[64] program=add";
  if (text.empty() && name == "reduce") text = "f32[8,100] axes=1 monoid=sum";
  if (text.rfind(name + " ", 0) == 0) text = text.substr(name.size() + 1);
  text = std::regex_replace(text, std::regex(R"(--(\w+) (\S+))"), "$1=$2");
  text = std::regex_replace(text, std::regex(R"((^| )(\w+=))"), "$1--attr $2");
  return text.empty() ? name : name + " " + text;
}

int count(uint16_t n) { return n == TN_VARIADIC ? -1 : n; }

// The cases of an op show how many scalars its calls push.
void count_scalars(const ops::OpDecl& decl, OpDoc* doc) {
  if (!decl.cases) return;
  for (const ops::Case& c : decl.cases()) {
    const bool absent = std::any_of(c.in.begin(), c.in.end(), [](const ops::CaseOperand& o) { return o.absent; });
    int& most = absent ? doc->scalars_absent : doc->scalars;
    most = std::max(most, static_cast<int>(c.push.size()));
  }
  doc->scalars_absent = std::max(doc->scalars, doc->scalars_absent);
}

OpDoc describe(const ops::OpDecl& decl, const Notes& notes) {
  const tn_op_def& def = decl.def;
  OpDoc doc;
  doc.name = def.name;
  doc.id = def.op_id;
  doc.n_in = count(def.n_in);
  doc.n_out = count(def.n_out);
  if (auto it = notes.family.find(doc.name); it != notes.family.end()) doc.family = it->second;
  if (auto it = notes.operands.find(doc.name); it != notes.operands.end()) doc.operands = it->second;
  doc.summary = decl.summary ? decl.summary : "";
  doc.formula = decl.formula ? decl.formula : "";
  doc.semantics = decl.semantics ? decl.semantics : "";
  doc.example = example_text(decl);
  for (uint32_t i = 0; i < def.n_attr_defs; ++i) {
    const tn_attr_def& a = def.attr_defs[i];
    doc.attrs.push_back({a.name, type_text(a), fallback_text(a), (a.flags & TN_ATTR_REQUIRED) != 0});
  }
  for (uint32_t t = 1; t < 64; ++t)
    if (decl.dtypes >> t & 1) doc.dtypes.push_back(dtype_name(t));
  if (def.view) doc.rules.push_back("view");
  if (def.expand) doc.rules.push_back("expand");
  if (def.vjp) doc.rules.push_back("vjp");
  if (def.jvp) doc.rules.push_back("jvp");
  if (def.batch) doc.rules.push_back("batch");
  if (def.cost) doc.rules.push_back("cost");
  count_scalars(decl, &doc);
  doc.ulp_f32 = decl.ulp_f32;
  return doc;
}

}  // namespace

std::vector<OpDoc> gather(const Notes& notes) {
  std::vector<OpDoc> docs;
  for (const ops::OpDecl* decl : ops::all_ops()) docs.push_back(describe(*decl, notes));
  return docs;
}

}  // namespace tenon::docgen
