// tools/conformance/compare.h - when a result counts as the expected one.
#pragma once
#include <string>
#include <vector>

#include "tools/conformance/machine.h"

namespace tenon::conformance {

// |got - expected| may be `ulps` units of the compute type at max(|expected|, scale), and half a unit of the element type.
struct Bound {
  Number ulps = 4;
  std::vector<Number> scale = {};  // per element; empty: none
};

// Empty when `got` (of its own dtype) is the expected numbers, which are exact or in f64. Otherwise the first difference.
// Integers and bool must be equal. Zeros: `signs` demands the sign too. A subnormal result may be a zero of its sign.
std::string difference(const Array& expected, const Array& got, const Bound& bound, bool signs = true);

}  // namespace tenon::conformance
