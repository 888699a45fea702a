// Every case of every op, by each candidate in turn, on the host and on the simulated accelerator, against the same call in
// f64 on the reference plugin. Integers and bool against the reference in their own type.
#include <gtest/gtest.h>
#include <tenon/ops.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/conformance/compare.h"
#include "tests/conformance/trial.h"

namespace tenon::conformance {
namespace {

constexpr const char* kDevices[] = {"cpu:0", "sim:0"};
constexpr int kShownFailures = 4;

bool is(const char* family, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* n) { return std::strcmp(family, n) == 0; });
}

// Sums and programs of sums: a bound on the sum of the sizes of their terms. Normalised rows: the largest element of the output.
Bound bound_of(const ops::OpDecl& decl, const ops::Case& c, const Call& wide, const Array& expected, size_t output) {
  Bound b;
  b.ulps = static_cast<Number>(decl.ulp_f32 * c.tolerance);
  const char* family = family_of(decl.def.name);
  const bool linear = is(family, {"conv", "reduction"}) || wide.op == "matmul" || wide.op == "reduce" || wide.op == "scatter";
  if (linear || wide.op == "pointwise") {
    if (linear) b.ulps = std::max<Number>(b.ulps, 4) + 8 + std::log2(static_cast<Number>(elements_of(wide) + 1));
    const Outcome sizes = reference_machine().run(of_sizes(wide), "cpu:0");
    if (sizes.ok()) b.scale = sizes.out[output].v;
    for (size_t i = 0; i < b.scale.size(); ++i) b.scale[i] = std::fabs(b.scale[i]);
  } else if (is(family, {"norm", "optimizer"}) || wide.op == "gelu") {
    Number largest = 0;
    for (Number v : expected.v) largest = std::max(largest, std::isfinite(v) ? std::fabs(v) : 0);
    b.scale.assign(expected.v.size(), largest);
  }
  return b;
}

class Tried {
 public:
  explicit Tried(const ops::OpDecl& decl) : decl_(decl) {}

  void one(const ops::Case& c, uint32_t dtype, uint32_t number) {
    const Call call = consistent(make_call(decl_, c, dtype, number));
    const bool drawn = (decl_.def.flags & TN_DEF_RANDOM) != 0;
    Call wide = drawn ? call : in_f64(call, c, dtype);
    Outcome expected = reference_machine().run(wide, "cpu:0");
    if (!expected.ok()) {
      wide = call;
      expected = reference_machine().run(wide, "cpu:0");
    }
    if (expected.status == TN_E_DTYPE || expected.status == TN_E_SHAPE) return refused(call, expected.status);
    if (!expected.ok()) return fail("reference: " + call_text(call) + ": " + expected.message);
    std::vector<Bound> bounds;
    for (size_t i = 0; i < expected.out.size(); ++i) bounds.push_back(bound_of(decl_, c, wide, expected.out[i], i));
    for (const char* device : kDevices) {
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
    for (const char* device : kDevices)
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
