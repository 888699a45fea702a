// tools/conformance/level4.cpp - honesty: random calls from seeds. What constraints and supports() let through must prepare,
// launch and be right; what supports() refuses must be refused with words, and again when asked again. A lie is shrunk to a
// small call and printed as an op spec.
#include <tenon/ops.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ops/cases.h"
#include "ops/emit.h"
#include "tools/conformance/constraints.h"
#include "tools/conformance/expect.h"
#include "tools/conformance/subject.h"

namespace tenon::conformance {
namespace {

// A declared case's program is a plain function, so what a random one is made of lies beside it. One thread.
struct RandomProgram { uint32_t seed = 0; uint32_t inputs = 2; };
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

// Everything a random call is made from; small enough to be changed and tried again.
struct Draw {
  ops::Case c;
  uint32_t dtype = 0, number = 0;
  std::vector<bool> reversed;
  std::vector<int64_t> skip;
  RandomProgram program;

  Call call(const ops::OpDecl& decl) const {
    current_program() = program;
    Call made = make_call(decl, c, dtype, number);
    for (size_t i = 0; i < made.in.size(); ++i) made.in[i].reversed = reversed[i] && !made.in[i].dims.empty(), made.in[i].skip = skip[i];
    return consistent(made);
  }
};

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

struct Lie {
  std::string kind, text;  // empty kind: none
};

class Judge {
 public:
  Judge(Subject& s, const tn_kernel_info& row) : s_(s), row_(row), decl_(*ops::find_op(row.op_id)) {}
  const ops::OpDecl& decl() const { return decl_; }
  uint64_t accepted = 0, narrower = 0;
  std::string narrower_example;

  Lie look(const Draw& d) {
    const Call call = d.call(decl_);
    Problem strided;
    std::string why;
    if (make_problem(call, &strided, &why) != TN_OK) return {};
    const Problem p = s_.as_asked(row_, strided);
    const tn_kernel_packed* stored = packed_of(row_);
    if (stored != nullptr && p.seen[stored->operand].layout != TN_LAYOUT_OPAQUE) return {};
    tn_diag diag = empty_diag();
    if (first_failing(row_, p.op(), s_.ref(), &why) >= 0) return outside(p);
    uint64_t bytes = 0;
    if (const tn_status status = s_.storable(row_, p, &bytes, &diag); status != TN_OK)
      return fault_of(status, diag).empty() ? Lie{} : Lie{"words", "its bytes() refuses it, but " + fault_of(status, diag)};
    tn_support support{};
    support.size = sizeof support;
    if (row_.supports != nullptr) {
      const tn_status first = row_.supports(s_.self(), &s_.ref(), &p.op(), &support, &diag);
      tn_diag ignored = empty_diag();
      if (row_.supports(s_.self(), &s_.ref(), &p.op(), &support, &ignored) != first) return {"answer", "supports() gives two answers to one question"};
      if (first != TN_OK && !fault_of(first, diag).empty()) return {"words", "refuses it, but " + fault_of(first, diag)};
      if (first != TN_OK) return {};
      if (!std::isfinite(support.est_ns)) return {"estimate", "supports() estimates " + std::to_string(support.est_ns) + " ns"};
    }
    return accepts(d, call, p);
  }

 private:
  // plugin.h asks supports() only about what constraints let through, so a yes here is worth a word, not a verdict.
  Lie outside(const Problem& p) {
    const int failing = first_failing(row_, p.op(), s_.ref(), &scratch_);
    const bool about_device = row_.cons[failing].kind == TN_NEED_DEVICE_KIND || row_.cons[failing].kind == TN_NEED_CAP;
    if (row_.supports == nullptr || about_device) return {};
    tn_support support{};
    support.size = sizeof support;
    tn_diag diag = empty_diag();
    if (row_.supports(s_.self(), &s_.ref(), &p.op(), &support, &diag) == TN_OK && narrower++ == 0) narrower_example = p.text() + " (" + scratch_ + ")";
    return {};
  }

  Lie accepts(const Draw& d, const Call& call, const Problem& p) {
    const Expectation expected = expected_of(decl_, d.c, call, d.dtype);
    if (!expected.outcome.ok()) return {};
    ++accepted;
    Subject::Stage stage;
    const Outcome got = s_.run(row_, p, &stage);
    if (got.status == TN_E_OOM || got.status == TN_E_UNAVAILABLE || got.status == TN_E_DEVICE_LOST) return {};
    if (!got.ok()) {
      static const char* const stages[] = {"prepare", "launch", "the work", ""};
      return {stages[static_cast<int>(stage)], std::string("is accepted, but ") + stages[static_cast<int>(stage)] + " fails: " + got.message};
    }
    const std::string wrong = difference(expected, got);
    return wrong.empty() ? Lie{} : Lie{"value", "is accepted, but its result is wrong: " + wrong};
  }

  Subject& s_;
  const tn_kernel_info& row_;
  const ops::OpDecl& decl_;
  std::string scratch_;
};

// Smaller calls that could tell the same lie.
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

Draw shrunk(Judge& judge, Draw d, const std::string& kind) {
  for (int steps = 0; steps < 200; ++steps) {
    bool any = false;
    for (const Draw& s : smaller(d))
      if (judge.look(s).kind == kind) {
        d = s, any = true;
        break;
      }
    if (!any) break;
  }
  return d;
}

void honest(Session& session, Subject& s, const tn_kernel_info& row, uint32_t rounds) {
  session.check(std::string("4.honest.") + row.name, {"honesty"}, [&](Trial& t) {
    Judge judge(s, row);
    const std::vector<ops::Case> cases = judge.decl().cases();
    if (cases.empty()) return t.skip("the op declares no cases");
    std::mt19937 random(static_cast<uint32_t>(session.options.seed * 7919 + row.op_id));
    for (uint32_t i = 0; i < rounds; ++i) {
      const Draw d = drawn(judge.decl(), cases, random);
      t.count();
      const Lie lie = judge.look(d);
      if (lie.kind.empty()) continue;
      const Draw small = shrunk(judge, d, lie.kind);
      t.fail(spec_text(small.call(judge.decl())) + " " + judge.look(small).text + "\nseed " + std::to_string(session.options.seed) + ", call " + std::to_string(i) +
             ", found as " + spec_text(d.call(judge.decl())));
      break;
    }
    t.note(std::to_string(judge.accepted) + " of " + std::to_string(rounds) + " random calls were accepted");
    if (judge.narrower != 0) t.note("supports() says yes to " + std::to_string(judge.narrower) + " calls that a constraint refuses: " + judge.narrower_example);
  });
}

}  // namespace

void level4(Session& session) {
  const Library library(session.options.plugin);
  Subject s(library, session.options);
  std::vector<const tn_kernel_info*> known;
  for (const tn_kernel_info* row : s.rows())
    if (ops::find_op(row->op_id) != nullptr) known.push_back(row);
  if (known.empty()) return session.check("4.honest", {"honesty"}, [](Trial& t) { t.skip("no kernels"); });
  const uint32_t rounds = std::max<uint32_t>(session.options.rounds / static_cast<uint32_t>(known.size()), 50);
  for (const tn_kernel_info* row : known) honest(session, s, *row, rounds);
}

}  // namespace tenon::conformance
