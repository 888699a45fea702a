// tools/docgen/op_doc.h - what is written about an op, gathered from its declaration and from ops.def.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tenon::docgen {

struct AttrDoc {
  std::string name, type, fallback;  // fallback: text of the default, empty when there is none
  bool required = false;
};

struct OpDoc {
  std::string name, family, operands, summary, formula, semantics, example;
  uint64_t id = 0;
  int n_in = 0, n_out = 0;  // -1: any number
  std::vector<AttrDoc> attrs;
  std::vector<std::string> dtypes, rules;
  int scalars = 0, scalars_absent = 0;  // pushed by a call; by one that leaves an optional operand out
  double ulp_f32 = 0;
};

// Notes of ops.def by op name: the comment behind an op's line, else the paragraph about a primitive.
struct Notes {
  std::map<std::string, std::string> operands, family;
  std::string general;  // rules that hold for all ops, one a line
};
Notes read_notes(const std::string& ops_def_text);
std::vector<OpDoc> gather(const Notes& notes);

std::string as_include(const std::vector<OpDoc>& docs);                        // C++ initialisers
std::string as_markdown(const std::vector<OpDoc>& docs, const Notes& notes);  // docs/semantics.md

}  // namespace tenon::docgen
