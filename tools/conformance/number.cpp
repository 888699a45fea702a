#include "tools/conformance/number.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "ops/op.h"

namespace tenon::conformance {
namespace {

const FloatFormat kF16{11, -14, 65504.0L}, kBf16{8, -126, 0x1.FEp127L}, kF32{24, -126, 0x1.FFFFFEp127L}, kF64{53, -1022, 0x1.FFFFFFFFFFFFFp1023L};

// Sign, exponent and fraction fields of an IEEE format of 16, 32 or 64 bits.
struct Fields {
  int fraction_bits, exponent_bits;
};

Fields fields_of(uint32_t dtype) {
  switch (dtype) {
    case TN_F16: return {10, 5};
    case TN_BF16: return {7, 8};
    case TN_F32: return {23, 8};
    default: return {52, 11};
  }
}

uint64_t bits_of(uint32_t dtype, Number value) {
  const Fields f = fields_of(dtype);
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (f.fraction_bits + f.exponent_bits) : 0;
  const uint64_t infinity = ((uint64_t{1} << f.exponent_bits) - 1) << f.fraction_bits;
  if (std::isnan(value)) return sign | infinity | uint64_t{1} << (f.fraction_bits - 1);
  const Number size = std::fabs(value);
  if (std::isinf(value)) return sign | infinity;
  if (size == 0) return sign;
  // A multiple of the spacing, ties to even by the rounding of rintl; carries run into the exponent by themselves.
  const FloatFormat& format = format_of(dtype);
  int exponent = std::max(std::ilogb(size), format.min_exponent);
  Number steps = std::rint(std::scalbn(size, format.digits - 1 - exponent));
  if (steps >= std::scalbn(Number{1}, format.digits)) steps /= 2, ++exponent;
  if (exponent > -format.min_exponent + 1) return sign | infinity;
  const auto whole = static_cast<uint64_t>(steps);
  const auto biased = static_cast<uint64_t>(exponent - format.min_exponent);
  return sign | (whole + (biased << f.fraction_bits));  // the hidden bit of a normal number raises the exponent field by 1
}

Number value_of(uint32_t dtype, uint64_t bits) {
  const Fields f = fields_of(dtype);
  const uint64_t fraction = bits & ((uint64_t{1} << f.fraction_bits) - 1);
  const auto field = static_cast<int>(bits >> f.fraction_bits & ((uint64_t{1} << f.exponent_bits) - 1));
  const bool negative = (bits >> (f.fraction_bits + f.exponent_bits) & 1) != 0;
  Number value;
  if (field == (1 << f.exponent_bits) - 1) value = fraction != 0 ? std::numeric_limits<Number>::quiet_NaN() : std::numeric_limits<Number>::infinity();
  else if (field == 0) value = std::scalbn(static_cast<Number>(fraction), format_of(dtype).min_exponent - f.fraction_bits);
  else value = std::scalbn(static_cast<Number>(fraction | uint64_t{1} << f.fraction_bits), format_of(dtype).min_exponent + field - 1 - f.fraction_bits);
  return negative ? -value : value;
}

bool is_signed(uint32_t dtype) { return dtype == TN_I8 || dtype == TN_I16 || dtype == TN_I32 || dtype == TN_I64; }

}  // namespace

size_t byte_size(uint32_t dtype) {
  switch (dtype) {
    case TN_BOOL: case TN_U8: case TN_I8: return 1;
    case TN_U16: case TN_I16: case TN_F16: case TN_BF16: return 2;
    case TN_U32: case TN_I32: case TN_F32: return 4;
    default: return 8;
  }
}

Number decode(uint32_t dtype, const void* element) {
  uint64_t bits = 0;
  const size_t bytes = byte_size(dtype);
  std::memcpy(&bits, element, bytes);
  if (ops::is_float(dtype)) return value_of(dtype, bits);
  if (!is_signed(dtype)) return static_cast<Number>(bits);
  const int shift = 64 - 8 * static_cast<int>(bytes);
  return static_cast<Number>(static_cast<int64_t>(bits << shift) >> shift);
}

void encode(uint32_t dtype, Number value, void* element) {
  uint64_t bits;
  if (ops::is_float(dtype)) bits = bits_of(dtype, value);
  else if (dtype == TN_BOOL) bits = value != 0;
  else if (std::isnan(value)) bits = 0;
  else if (value <= lowest_integer(dtype)) bits = static_cast<uint64_t>(static_cast<int64_t>(lowest_integer(dtype)));
  else if (value >= highest_integer(dtype)) bits = static_cast<uint64_t>(highest_integer(dtype));
  else bits = value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value);
  std::memcpy(element, &bits, byte_size(dtype));
}

Number rounded(uint32_t dtype, Number value) {
  uint64_t bits = 0;
  encode(dtype, value, &bits);
  return decode(dtype, &bits);
}

const FloatFormat& format_of(uint32_t dtype) {
  switch (dtype) {
    case TN_F16: return kF16;
    case TN_BF16: return kBf16;
    case TN_F32: return kF32;
    default: return kF64;
  }
}

Number smallest_subnormal(uint32_t dtype) {
  const FloatFormat& f = format_of(dtype);
  return std::scalbn(Number{1}, f.min_exponent + 1 - f.digits);
}

Number ulp_of(uint32_t dtype, Number value) {
  const FloatFormat& f = format_of(dtype);
  const int exponent = value == 0 || !std::isfinite(value) ? f.min_exponent : std::max(std::ilogb(std::fabs(value)), f.min_exponent);
  return std::scalbn(Number{1}, exponent + 1 - f.digits);
}

Number epsilon_of(uint32_t dtype) { return std::scalbn(Number{1}, 1 - format_of(dtype).digits); }

Number lowest_integer(uint32_t dtype) {
  return is_signed(dtype) ? -std::scalbn(Number{1}, 8 * static_cast<int>(byte_size(dtype)) - 1) : Number{0};
}

Number highest_integer(uint32_t dtype) {
  return std::scalbn(Number{1}, 8 * static_cast<int>(byte_size(dtype)) - (is_signed(dtype) ? 1 : 0)) - 1;
}

std::vector<Number> special_values(uint32_t dtype) {
  if (dtype == TN_BOOL) return {0, 1};
  if (!ops::is_float(dtype)) {
    const Number lo = lowest_integer(dtype), hi = highest_integer(dtype);
    std::vector<Number> list{0, 1, 2, 3, 7, hi, hi - 1, lo, lo + 1, 100};
    if (lo < 0)
      for (Number v : {-1.0L, -2.0L, -7.0L, -100.0L}) list.push_back(v);
    return list;
  }
  const FloatFormat& f = format_of(dtype);
  const Number tiny = std::scalbn(Number{1}, f.min_exponent), inf = std::numeric_limits<Number>::infinity();
  std::vector<Number> list{std::numeric_limits<Number>::quiet_NaN(), inf, f.largest, tiny, smallest_subnormal(dtype),
                           tiny - smallest_subnormal(dtype), 0, 0.5L, 1.5L, 2.5L, 1, 3, 0.1L, 100};
  const size_t n = list.size();
  for (size_t i = 0; i < n; ++i) list.push_back(-list[i]);
  for (Number& v : list) v = std::isnan(v) ? v : rounded(dtype, v);
  return list;
}

std::string number_text(Number value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.20Lg", value);
  return text;
}

}  // namespace tenon::conformance
