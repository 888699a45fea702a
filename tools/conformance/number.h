// tools/conformance/number.h - element types as numbers: exact conversion to long double and correctly rounded back.
#pragma once
#include <tenon/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::conformance {

// Holds every value of every element type exactly (64 bits of significand and more).
using Number = long double;

size_t byte_size(uint32_t dtype);
Number decode(uint32_t dtype, const void* element);
// Floats: nearest even. Integers and bool: toward 0, saturating, NaN is 0 (the rule of cast), bool: x != 0.
void encode(uint32_t dtype, Number value, void* element);
Number rounded(uint32_t dtype, Number value);  // decode(encode(value))

struct FloatFormat {
  int digits;        // of the significand, the hidden one included
  int min_exponent;  // of the smallest normal number 2^min_exponent
  Number largest;
};
const FloatFormat& format_of(uint32_t dtype);
Number smallest_subnormal(uint32_t dtype);
// Distance between neighbours at |value|, which may lie beyond the largest finite number.
Number ulp_of(uint32_t dtype, Number value);
Number epsilon_of(uint32_t dtype);  // 2^(1 - digits)
Number lowest_integer(uint32_t dtype);
Number highest_integer(uint32_t dtype);

// Values that break things, for one element type; the same number for every type of a kind.
std::vector<Number> special_values(uint32_t dtype);

std::string number_text(Number value);

}  // namespace tenon::conformance
