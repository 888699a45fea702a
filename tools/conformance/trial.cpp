#include "tools/conformance/trial.h"

#include <tenon/ops.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

namespace tenon::conformance {
namespace {

using ops::Case;
using ops::CaseOperand;
using ops::Fill;

bool full = false;

// std distributions differ between libraries; fixed numbers are wanted.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  double unit() { return (engine_() + 0.5) / 4294967296.0; }
  uint64_t below(uint64_t n) { return engine_() % n; }
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += unit();
    return sum;
  }

 private:
  std::mt19937 engine_;
};

Number float_value(Fill fill, size_t i, size_t n, Random& random) {
  switch (fill) {
    case Fill::Positive: return 0.1 + 1.9 * random.unit();
    case Fill::Unit: return -0.9 + 1.8 * random.unit();
    case Fill::Spaced: return 0.05 * (static_cast<double>(i) - static_cast<double>(n) / 2) + 0.01;
    default: return random.normal();
  }
}

Number integer_value(Fill fill, size_t i, size_t n, uint32_t dtype, Random& random) {
  const bool negative = lowest_integer(dtype) < 0;
  switch (fill) {
    case Fill::Positive: return 1 + static_cast<Number>(random.below(6));
    case Fill::Unit: return negative ? static_cast<Number>(random.below(3)) - 1 : static_cast<Number>(random.below(2));
    case Fill::Spaced: return static_cast<Number>(i % 120) - (negative ? static_cast<Number>(std::min<size_t>(n, 120) / 2) : 0);
    default: return static_cast<Number>(random.below(13)) - (negative ? 6 : 0);
  }
}

Array filled(const CaseOperand& o, uint32_t under_test, Random& random) {
  if (o.absent) return {};
  Array a{o.dtype != 0 ? o.dtype : under_test, o.dims, {}, o.layout};
  const size_t n = count(o.dims);
  for (size_t i = 0; i < n; ++i) {
    Number v;
    if (o.fill == Fill::Index) v = static_cast<Number>(o.limit > 0 ? random.below(static_cast<uint64_t>(o.limit)) : 0);
    else if (o.fill == Fill::Bool || a.dtype == TN_BOOL) v = static_cast<Number>(random.below(2));
    else if (ops::is_float(a.dtype)) v = float_value(o.fill, i, n, random);
    else v = integer_value(o.fill, i, n, a.dtype, random);
    a.v.push_back(rounded(a.dtype, v));
  }
  if (o.fill == Fill::Spaced)
    for (size_t i = n; i > 1; --i) std::swap(a.v[i - 1], a.v[random.below(i)]);
  // One row stands for all: axis 0 does not move in memory.
  if (o.layout == ops::Layout::Broadcast && !a.v.empty()) {
    const size_t row = n / static_cast<size_t>(o.dims[0]);
    for (size_t i = row; i < n; ++i) a.v[i] = a.v[i - row];
  }
  return a;
}

uint32_t push_dtype(const Case& c, uint32_t under_test) {
  uint32_t dtype = under_test;
  if (c.in.empty())
    for (const ops::CaseAttr& a : c.attrs)
      if (a.key == TN_KEY_DTYPE) dtype = static_cast<uint32_t>(a.i);
  return ops::compute_type(dtype);
}

}  // namespace

std::vector<uint64_t> push_slots(const std::vector<double>& values, uint64_t raw, uint32_t compute_dtype) {
  std::vector<uint64_t> slots;
  for (size_t k = 0; k < values.size(); ++k) {
    uint64_t bits = 0;
    if ((raw >> k & 1) != 0) bits = static_cast<uint64_t>(values[k]);
    else encode(compute_dtype, static_cast<Number>(values[k]), &bits);
    slots.push_back(bits);
  }
  return slots;
}

Call make_call(const ops::OpDecl& decl, const Case& c, uint32_t dtype, uint32_t number) {
  Call call;
  call.op = decl.def.name;
  call.attrs = c.attrs;
  call.program_dtype = dtype;
  Random random(static_cast<uint32_t>(decl.def.op_id) * 1000003u + number * 101u + dtype);
  for (const CaseOperand& o : c.in) call.in.push_back(filled(o, dtype, random));
  call.push = push_slots(c.push, c.raw_push, push_dtype(c, dtype));
  return call;
}

Call consistent(Call call) {
  if (call.op != "max_pool2d_grad") return call;
  Outcome y = reference_machine().run({"max_pool2d", call.attrs, {call.in[0]}}, "cpu:0");
  if (y.ok()) call.in[1].v = y.out[0].v;
  return call;
}

Call in_f64(const Call& call, const Case& c, uint32_t from) {
  Call wide = call;
  if (!ops::is_float(from) || call.in.empty()) return wide;
  for (size_t i = 0; i < wide.in.size(); ++i)
    if (wide.in[i].dtype == from && c.in[i].dtype == 0) wide.in[i].dtype = TN_F64;
  wide.program_dtype = TN_F64;
  for (size_t k = 0; k < wide.push.size(); ++k) {
    if ((c.raw_push >> k & 1) != 0) continue;
    const Number value = decode(ops::compute_type(from), &call.push[k]);
    encode(TN_F64, value, &wide.push[k]);
  }
  return wide;
}

Call of_sizes(Call call) {
  for (Array& a : call.in)
    if (ops::is_float(a.dtype))
      for (Number& v : a.v) v = v < 0 ? -v : v;
  return call;
}

std::string call_text(const Call& call) {
  std::string text = call.op;
  for (const Array& a : call.in) text += " " + type_text(a);
  for (const ops::CaseAttr& a : call.attrs) {
    text += " #" + std::to_string(a.key) + "=";
    if (a.kind == ops::CaseAttr::Kind::I64) text += std::to_string(a.i);
    else if (a.kind == ops::CaseAttr::Kind::F64) text += number_text(a.f);
    else if (a.kind == ops::CaseAttr::Kind::Program) text += "program";
    else
      for (size_t i = 0; i < a.list.size(); ++i) text += (i != 0 ? "," : "") + std::to_string(a.list[i]);
  }
  return text;
}

std::string place_text(const std::string& device, const Candidate& candidate) { return "on " + device + " by " + candidate.text(); }

const char* family_of(const std::string& op) {
#define TN_FAMILY_(NAME, name, id, n_in, n_out, family) {#name, #family},
  static const std::map<std::string, const char*> families = {TN_OPS(TN_FAMILY_)};
#undef TN_FAMILY_
  const auto at = families.find(op);
  return at == families.end() ? "" : at->second;
}

bool is_elementwise(const ops::OpDecl& decl) { return (decl.def.flags & TN_DEF_ELEMENTWISE) != 0; }

std::vector<uint32_t> dtypes_of(const ops::OpDecl& decl) {
  std::vector<uint32_t> list;
  for (uint32_t d = 1; d < 64; ++d)
    if ((decl.dtypes >> d & 1) != 0) list.push_back(d);
  return list;
}

size_t elements_of(const Call& call) {
  size_t n = 0;
  for (const Array& a : call.in) n += a.v.size();
  return n;
}

std::vector<const ops::OpDecl*> all_decls() {
  const auto all = ops::all_ops();
  return {all.begin(), all.end()};
}

bool full_run() { return full; }
void set_full_run(bool on) { full = on; }

}  // namespace tenon::conformance
