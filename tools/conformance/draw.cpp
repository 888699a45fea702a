#include "tools/conformance/draw.h"

#include "ops/cases.h"
#include "ops/emit.h"

namespace tenon::conformance {
namespace {

// A declared case's program is a plain function, so what a random one is made of lies beside it. One thread.
RandomProgram& current_program() {
  static RandomProgram p;
  return p;
}

// Over small whole numbers every result is exact in every type, so any order of evaluation must agree.
void write_random_program(ops::ProgramBuilder& b) {
  const RandomProgram p = current_program();
  std::mt19937 random(p.seed);
  std::vector<ops::ProgramBuilder::Id> values;
  for (uint32_t k = 0; k < p.inputs; ++k) values.push_back(b.input(k));
  const auto pick = [&] { return values[random() % values.size()]; };
  int products = 0;
  for (uint32_t i = 0, n = 1 + random() % 8; i < n; ++i) {
    const auto x = pick(), y = pick();
    switch (random() % 8) {
      case 0: values.push_back(b.op(TN_OP_ADD, x, y)); break;
      case 1: values.push_back(b.op(TN_OP_SUB, x, y)); break;
      case 2: values.push_back(++products <= 2 ? b.op(TN_OP_MUL, x, y) : b.op(TN_OP_MAX, x, y)); break;
      case 3: values.push_back(b.op(TN_OP_MIN, x, y)); break;
      case 4: values.push_back(b.op(TN_OP_MAX, x, y)); break;
      case 5: values.push_back(b.op(TN_OP_ABS, x)); break;
      case 6: values.push_back(b.op(TN_OP_NEG, x)); break;
      default: values.push_back(b.op(TN_OP_SELECT, b.op(TN_OP_LT, x, y), x, pick()));
    }
  }
  b.output(values.back());
}

void replace_size(ops::Case* c, int64_t from, int64_t to) {
  for (ops::CaseOperand& o : c->in) {
    for (int64_t& d : o.dims) d = d == from ? to : d;
    if (o.limit == from) o.limit = to;
  }
}

// A size that stands in several places grows in all of them.
bool small_enough(const ops::Case& c) {
  for (const ops::CaseOperand& o : c.in) {
    double n = 1;
    for (int64_t d : o.dims) n *= static_cast<double>(d);
    if (n > 20000) return false;
  }
  return true;
}

}  // namespace

void Draw::use() const { current_program() = program; }

Call Draw::call(const ops::OpDecl& decl) const {
  use();
  Call made = make_call(decl, c, dtype, number);
  for (size_t i = 0; i < made.in.size(); ++i) made.in[i].reversed = reversed[i] && !made.in[i].dims.empty(), made.in[i].skip = skip[i];
  return consistent(made);
}

Draw drawn(const ops::OpDecl& decl, const std::vector<ops::Case>& cases, std::mt19937& random) {
  Draw d;
  d.c = cases[random() % cases.size()];
  d.number = random() % 100000;
  const auto dtypes = dtypes_of(decl);
  d.dtype = dtypes[random() % dtypes.size()];
  if (decl.def.op_id == TN_OPID_POINTWISE && random() % 2 == 0) {
    d.program = {static_cast<uint32_t>(random()), static_cast<uint32_t>(d.c.in.size())};
    d.c.attrs = {ops::case_program(TN_KEY_PROGRAM, write_random_program)};
    d.c.push.clear();
    for (ops::CaseOperand& o : d.c.in) o.fill = ops::Fill::Index, o.limit = 5, o.dtype = 0;
  }
  for (int i = 0; i < 2 && random() % 2 == 0; ++i) {
    ops::Case other = d.c;
    for (const ops::CaseOperand& o : d.c.in)
      if (!o.dims.empty()) { replace_size(&other, o.dims[random() % o.dims.size()], 1 + static_cast<int64_t>(random() % 40)); break; }
    if (small_enough(other)) d.c = other;
  }
  for (ops::CaseOperand& o : d.c.in) {
    if (random() % 3 == 0 && o.layout != ops::Layout::Broadcast) o.layout = static_cast<ops::Layout>(random() % 3);
    d.reversed.push_back(random() % 5 == 0);
    d.skip.push_back(random() % 4 == 0 ? static_cast<int64_t>(random() % 4) : 0);
  }
  return d;
}

std::vector<Draw> smaller(const Draw& d) {
  std::vector<Draw> list;
  for (const ops::CaseOperand& o : d.c.in)
    for (int64_t size : o.dims)
      for (int64_t to : {int64_t{1}, int64_t{2}, size / 2, size - 1}) {
        if (to >= size || to < 0) continue;
        list.push_back(d);
        replace_size(&list.back().c, size, to);
      }
  for (size_t i = 0; i < d.c.in.size(); ++i) {
    if (d.c.in[i].layout != ops::Layout::Dense) list.push_back(d), list.back().c.in[i].layout = ops::Layout::Dense;
    if (d.reversed[i]) list.push_back(d), list.back().reversed[i] = false;
    if (d.skip[i] != 0) list.push_back(d), list.back().skip[i] = 0;
  }
  return list;
}

}  // namespace tenon::conformance
