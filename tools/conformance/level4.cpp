// tools/conformance/level4.cpp - honesty: random calls from seeds. What constraints and supports() let through must prepare,
// launch and be right; what supports() refuses must be refused with words, and again when asked again; what constraints
// refuse, supports() must refuse. A lie is shrunk to a small call and printed as an op spec.
#include <tenon/ops.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tools/conformance/constraints.h"
#include "tools/conformance/draw.h"
#include "tools/conformance/expect.h"
#include "tools/conformance/subject.h"

namespace tenon::conformance {
namespace {

struct Lie {
  std::string kind, text;  // empty kind: none
};

class Judge {
 public:
  Judge(Subject& s, const tn_kernel_info& row) : s_(s), row_(row), decl_(*ops::find_op(row.op_id)) {}
  const ops::OpDecl& decl() const { return decl_; }
  uint64_t accepted = 0;

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
  // Constraints are necessary conditions: what they refuse, supports() must not take. They are data that the support matrix is
  // built from; a row that takes more than its data say has one of both wrong. Of another device it is not asked at all.
  Lie outside(const Problem& p) {
    std::string broken;
    const int failing = first_failing(row_, p.op(), s_.ref(), &broken);
    const bool about_device = row_.cons[failing].kind == TN_NEED_DEVICE_KIND || row_.cons[failing].kind == TN_NEED_CAP;
    if (row_.supports == nullptr || about_device) return {};
    tn_support support{};
    support.size = sizeof support;
    tn_diag diag = empty_diag();
    if (row_.supports(s_.self(), &s_.ref(), &p.op(), &support, &diag) != TN_OK) return {};
    return {"constraint", "is accepted by supports(), though its row refuses it: " + broken};
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
};

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
