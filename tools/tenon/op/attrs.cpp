// Attributes from "key=value".
#include <tenon/ops.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <tenon/core/error.hpp>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/failure.h"
#include "tools/tenon/common/names.h"
#include "tools/tenon/op/spec.h"

namespace tenon::cli {
namespace {

struct Word { const char* name; int64_t value; };
#define WORD(NAME, value) {#NAME, value},
constexpr Word kMonoids[] = {TN_MONOIDS(WORD)};
constexpr Word kScatters[] = {TN_SCATTERS(WORD)};
#undef WORD

[[noreturn]] void bad_attr(const std::string& text, const std::string& why, const std::string& advice) {
  throw Failure(kUsage, "TN-CLI-005", "attribute \"" + text + "\" is not understood", "", why, advice);
}

bool same_word(const std::string& a, const char* b) {
  return a.size() == std::strlen(b) && std::equal(a.begin(), a.end(), b, [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
         });
}

bool integer(const std::string& text, int64_t* out) {
  char* end = nullptr;
  errno = 0;
  *out = std::strtoll(text.c_str(), &end, 10);
  return !text.empty() && *end == 0 && errno == 0;
}

// Words stand for numbers where the contract numbers them.
bool worded_integer(const tn_attr_def& def, const std::string& text, int64_t* out) {
  if (integer(text, out)) return true;
  if (def.key == TN_KEY_DTYPE) return (*out = dtype_number(text)) != 0;
  for (const Word& w : kMonoids)
    if (def.key == TN_KEY_MONOID && same_word(text, w.name)) return *out = w.value, true;
  for (const Word& w : kScatters)
    if (def.key == TN_KEY_MODE && same_word(text, w.name)) return *out = w.value, true;
  return false;
}

bool real(const std::string& text, double* out) {
  char* end = nullptr;
  *out = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == 0;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size() && !text.empty();) {
    const size_t end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

const tn_attr_def& find_def(const std::string& text, const std::string& key, const tn_op_entry& op) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < op.n_attr_defs; ++i) {
    if (key == op.attr_defs[i].name) return op.attr_defs[i];
    names.push_back(op.attr_defs[i].name);
  }
  std::string known;
  for (const std::string& n : names) known += (known.empty() ? "" : ", ") + n;
  const std::string near = nearest_name(key, names.data(), names.size());
  bad_attr(text, std::string(op.name) + (known.empty() ? " has no attributes" : " knows " + known),
           near.empty() ? "`tenon ops " + std::string(op.name) + "` shows them" : "--attr " + near + "=...");
}

struct Scalar { const char* name; uint32_t op; int operands; };
#define SCALAR(name, code, operands, e32, e64, meaning) {#name + 6, code, operands},
constexpr Scalar kScalars[] = {TN_OPCODES(SCALAR)};
#undef SCALAR

uint32_t compute_type(uint32_t dtype) {
  return dtype == TN_F16 || dtype == TN_BF16 || dtype == TN_F8E4M3 || dtype == TN_F8E5M2 ? uint32_t{TN_F32} : dtype;
}

}  // namespace

bool scalar_program(const std::string& name, uint32_t dtype, bool accumulated, std::vector<tn_inst>* code, tn_program* out) {
  const bool narrow_int = dtype == TN_U8 || dtype == TN_I8;  // products of these are i32
  const uint8_t compute = static_cast<uint8_t>(accumulated && narrow_int ? uint32_t{TN_I32} : compute_type(dtype));
  const uint8_t storage = accumulated && narrow_int ? compute : static_cast<uint8_t>(dtype);
  const Scalar* found = nullptr;
  for (const Scalar& s : kScalars)
    if (same_word(name, s.name) && (s.op == TN_OP_ABS || s.op > TN_OP_CAST)) found = &s;
  if (!found && name != "identity") return false;
  const uint16_t n_in = static_cast<uint16_t>(found ? found->operands : 1);
  if (n_in == 0 || (found && (found->op == TN_OP_BITCAST || found->op == TN_OP_PHILOX || found->op == TN_OP_SELECT))) return false;
  uint16_t value[3] = {};
  auto emit = [&](uint32_t op, uint8_t type, uint16_t a, uint16_t b = 0, uint16_t c = 0) {
    code->push_back({static_cast<uint8_t>(op), type, a, b, c});
    return static_cast<uint16_t>(code->size() - 1);
  };
  for (uint16_t k = 0; k < n_in; ++k) {
    const uint8_t type = accumulated && k == 0 ? compute : storage;
    value[k] = emit(TN_OP_INPUT, type, k);
    if (type != compute) value[k] = emit(TN_OP_CAST, compute, value[k]);
  }
  const bool truth = found && (found->op == TN_OP_ISNAN || (found->op >= TN_OP_LT && found->op <= TN_OP_NE));
  uint16_t result = value[0];
  if (found) result = emit(found->op, truth ? uint8_t{TN_BOOL} : compute, value[0], value[1], value[2]);
  if (!truth && storage != compute) result = emit(TN_OP_CAST, storage, result);
  *out = tn_program{};
  out->size = sizeof *out;
  out->n_inst = static_cast<uint8_t>(code->size());
  out->n_in = static_cast<uint8_t>(n_in);
  out->n_out = 1;
  out->out[0] = result;
  out->inst = code->data();
  return true;
}

void AttrSet::add(const std::string& text, const tn_op_entry& op, const std::vector<tn_type>& operands) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) bad_attr(text, "there is no = in it", "write key=value");
  const std::string key = text.substr(0, equals), value = text.substr(equals + 1);
  const tn_attr_def& def = find_def(text, key, op);
  tn_attr attr{def.key, def.type, {}, 1};
  bool good = true;
  switch (def.type) {
    case TN_ATTR_I64: good = worded_integer(def, value, &attr.v.i); break;
    case TN_ATTR_F64: good = real(value, &attr.v.f); break;
    case TN_ATTR_I64S:
      integers_.emplace_back();
      for (const std::string& part : split(value)) good = good && integer(part, &integers_.back().emplace_back());
      attr.v.p = integers_.back().data(), attr.len = integers_.back().size();
      break;
    case TN_ATTR_F64S:
      reals_.emplace_back();
      for (const std::string& part : split(value)) good = good && real(part, &reals_.back().emplace_back());
      attr.v.p = reals_.back().data(), attr.len = reals_.back().size();
      break;
    case TN_ATTR_STRING: attr.v.p = texts_.emplace_back(value).c_str(), attr.len = value.size(); break;
    case TN_ATTR_PROGRAM:
      good = scalar_program(value, operands.empty() || !operands[0].dtype ? uint32_t{TN_F32} : operands[0].dtype, def.key == TN_KEY_POST, &code_.emplace_back(), &programs_.emplace_back());
      attr.v.p = &programs_.back();
      break;
    default: good = false;
  }
  static constexpr const char* kWanted[] = {"", "one whole number", "one number", "text", "whole numbers with commas between", "numbers with commas between", "a type", "the name of a scalar op, like add or exp"};
  if (!good) bad_attr(text, std::string(def.name) + " wants " + kWanted[std::min<size_t>(def.type, 7)] + (def.key == TN_KEY_DTYPE ? " or a dtype" : ""), "`tenon ops " + std::string(op.name) + "` shows it");
  std::erase_if(attrs_, [&](const tn_attr& a) { return a.key == def.key; });
  attrs_.insert(std::upper_bound(attrs_.begin(), attrs_.end(), attr, [](const tn_attr& a, const tn_attr& b) { return a.key < b.key; }), attr);
}

}  // namespace tenon::cli
