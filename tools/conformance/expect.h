// tools/conformance/expect.h - what a declared case must give: the reference kernels at f64, and bounds around it.
#pragma once
#include <string>
#include <vector>

#include "tools/conformance/compare.h"
#include "tools/conformance/trial.h"

namespace tenon::conformance {

struct Expectation {
  Outcome outcome;            // not ok: nobody may compute this (TN_E_DTYPE, TN_E_SHAPE), or the reference cannot
  std::vector<Bound> bounds;  // one per output
  bool refused() const { return outcome.status == TN_E_DTYPE || outcome.status == TN_E_SHAPE; }
};

// Floats in f64, integers and bool in their own type. Sums, and programs of sums, get a bound on the sum of the sizes of
// their terms; normalised rows one on the largest element of the output.
Expectation expected_of(const ops::OpDecl& decl, const ops::Case& c, const Call& call, uint32_t dtype);

// The first difference of any output, or "".
std::string difference(const Expectation& expected, const Outcome& got);

}  // namespace tenon::conformance
