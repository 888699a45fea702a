// Every case of every op, by each candidate in turn, on the host and on the simulated accelerator, against the same call in
// f64 on the reference plugin. Integers and bool against the reference in their own type.
#include <gtest/gtest.h>
#include <tenon/ops.h>

#include "tests/conformance/full_machine.h"
#include "tools/conformance/expect.h"

namespace tenon::conformance {
namespace {

constexpr int kShownFailures = 4;

class Tried {
 public:
  explicit Tried(const ops::OpDecl& decl) : decl_(decl) {}

  void one(const ops::Case& c, uint32_t dtype, uint32_t number) {
    const Call call = consistent(make_call(decl_, c, dtype, number));
    const Expectation e = expected_of(decl_, c, call, dtype);
    const Outcome& expected = e.outcome;
    const std::vector<Bound>& bounds = e.bounds;
    if (e.refused()) return refused(call, expected.status);
    if (!expected.ok()) return fail("reference: " + call_text(call) + ": " + expected.message);
    for (const char* device : test_devices()) {
      const auto candidates = full_machine().candidates(call, device, full_run());
      if (candidates.empty() && !is_view()) fail(call_text(call) + " on " + device + ": no candidate");
      if (is_view()) check(expected, bounds, call, device, full_machine().run(call, device), {"view", {}, {}});
      for (const Candidate& k : candidates) check(expected, bounds, call, device, full_machine().run(call, device, k), k);
    }
  }

  int calls = 0;

 private:
  bool is_view() const { return decl_.def.view != nullptr; }

  // What the reference may not do, nobody may: the shape rule is one for all.
  void refused(const Call& call, tn_status status) {
    for (const char* device : test_devices())
      if (full_machine().run(call, device).status != status) fail(call_text(call) + " on " + device + ": not refused as on the reference");
  }

  void check(const Outcome& expected, const std::vector<Bound>& bounds, const Call& call, const char* device, const Outcome& got, const Candidate& k) {
    ++calls;
    const std::string where = call_text(call) + " " + place_text(device, k) + ": ";
    // A primitive pinned for the parts may not take what this expansion asks.
    if (!k.part.empty() && got.status == TN_E_UNSUPPORTED) return;
    if (!got.ok()) return fail(where + got.message);
    for (size_t i = 0; i < expected.out.size(); ++i) {
      if (expected.out[i].absent()) continue;
      const std::string text = difference(expected.out[i], got.out[i], bounds[i], false);
      if (!text.empty()) return fail(where + "output " + std::to_string(i) + " " + text);
    }
  }

  void fail(const std::string& text) {
    if (failures_++ < kShownFailures) ADD_FAILURE() << text;
  }

  const ops::OpDecl& decl_;
  int failures_ = 0;
};

class Values : public testing::TestWithParam<const ops::OpDecl*> {};

// The sample: every case in up to three element types, every element type in some cases, turning from case to case.
TEST_P(Values, agree_with_f64_by_every_candidate) {
  const ops::OpDecl& decl = *GetParam();
  const auto dtypes = dtypes_of(decl);
  Tried tried(decl);
  uint32_t number = 0;
  for (const ops::Case& c : decl.cases()) {
    for (size_t d = 0; d < dtypes.size(); ++d)
      if (full_run() || (d + number) % dtypes.size() < 3) tried.one(c, dtypes[d], number);
    ++number;
  }
  EXPECT_GT(tried.calls, 0);
}

INSTANTIATE_TEST_SUITE_P(Op, Values, testing::ValuesIn(all_decls()), DeclName());

}  // namespace
}  // namespace tenon::conformance
