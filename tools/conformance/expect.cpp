#include "tools/conformance/expect.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tenon::conformance {
namespace {

bool is(const char* family, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* n) { return std::strcmp(family, n) == 0; });
}

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

}  // namespace

Expectation expected_of(const ops::OpDecl& decl, const ops::Case& c, const Call& call, uint32_t dtype) {
  Expectation e;
  const bool drawn = (decl.def.flags & TN_DEF_RANDOM) != 0;
  Call wide = drawn ? call : in_f64(call, c, dtype);
  e.outcome = reference_machine().run(wide, "cpu:0");
  if (!e.outcome.ok()) {
    wide = call;
    e.outcome = reference_machine().run(wide, "cpu:0");
  }
  for (size_t i = 0; e.outcome.ok() && i < e.outcome.out.size(); ++i) e.bounds.push_back(bound_of(decl, c, wide, e.outcome.out[i], i));
  return e;
}

std::string difference(const Expectation& expected, const Outcome& got) {
  if (expected.outcome.out.size() != got.out.size()) return std::to_string(got.out.size()) + " outputs, expected " + std::to_string(expected.outcome.out.size());
  for (size_t i = 0; i < got.out.size(); ++i) {
    if (expected.outcome.out[i].absent()) continue;
    const std::string text = difference(expected.outcome.out[i], got.out[i], expected.bounds[i], false);
    if (!text.empty()) return "output " + std::to_string(i) + " " + text;
  }
  return {};
}

}  // namespace tenon::conformance
