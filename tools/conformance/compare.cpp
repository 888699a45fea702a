#include "tools/conformance/compare.h"

#include <algorithm>
#include <cmath>

#include "ops/op.h"

namespace tenon::conformance {
namespace {

bool same_float(Number expected, Number got, uint32_t dtype, Number ulps, Number scale, bool signs) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  if (std::isinf(expected) && std::isinf(got)) return expected == got;
  const FloatFormat& format = format_of(dtype);
  const uint32_t compute = ops::compute_type(dtype);
  const Number target = rounded(dtype, expected);
  if (signs && target == 0 && got == 0 && scale == 0) return std::signbit(target) == std::signbit(got);
  Number allowed = ulps * epsilon_of(compute) * std::max(std::fabs(expected), scale) + ulps * smallest_subnormal(dtype);
  if (dtype != compute || std::fabs(expected - target) > 0) allowed += ulp_of(dtype, target) / 2;
  // Where the largest finite number and infinity are both within the bound of the exact result.
  if (std::isinf(expected)) return std::signbit(expected) == std::signbit(got) && std::fabs(got) >= format.largest * (1 - 4 * epsilon_of(dtype));
  if (std::isinf(got)) return std::signbit(expected) == std::signbit(got) && std::fabs(expected) + allowed >= format.largest;
  const Number tiny = std::scalbn(Number{1}, format.min_exponent);
  // Subnormal results may be flushed, so no more than their size is promised.
  if (std::fabs(expected) < tiny) allowed = std::max(allowed, std::fabs(expected));
  if (got == 0 && std::fabs(expected) < tiny) return !signs || expected == 0 || scale != 0 || std::signbit(expected) == std::signbit(got);
  return std::fabs(got - expected) <= allowed;
}

}  // namespace

std::string difference(const Array& expected, const Array& got, const Bound& bound, bool signs) {
  if (expected.dims != got.dims) return "dims " + type_text(got) + ", expected " + type_text(expected);
  for (size_t i = 0; i < expected.v.size(); ++i) {
    const Number scale = bound.scale.empty() ? 0 : bound.scale[i];
    const bool same = ops::is_float(got.dtype) ? same_float(expected.v[i], got.v[i], got.dtype, bound.ulps, std::isfinite(scale) ? scale : 0, signs)
                                               : expected.v[i] == got.v[i];
    if (!same)
      return "element " + std::to_string(i) + " of " + type_text(got) + " is " + number_text(got.v[i]) + ", expected " + number_text(expected.v[i]);
  }
  return {};
}

}  // namespace tenon::conformance
