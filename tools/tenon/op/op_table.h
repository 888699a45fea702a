// tools/tenon/op/op_table.h - the pages of the ops, made at build time from their declarations (tools/docgen).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tenon::cli {

struct AttrPage {
  const char *name, *type, *fallback;  // type: integer, number, integers, dtype, text, program
  bool required;
};
struct OpPage {
  const char* name;
  uint64_t id;
  const char* family;
  int n_in, n_out;  // -1: any number
  const char *operands, *summary, *formula, *semantics, *example, *dtypes, *rules;
  double ulp_f32;
  int scalars, scalars_absent;  // pushed by a call; by one that leaves an optional operand out
  std::vector<AttrPage> attrs;
};

std::span<const OpPage> op_pages();
const OpPage* find_op_page(const std::string& name);
// Throws TN-CLI-003 with the nearest name.
const OpPage& need_op_page(const std::string& name);

}  // namespace tenon::cli
