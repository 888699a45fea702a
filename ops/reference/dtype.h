// ops/reference/dtype.h - element types: sizes, and bit-exact conversion of the narrow floats.
//
//   float x = f16_to_f32(0x3C00);      // 1.0
//   uint16_t h = f32_to_f16(65520.f);  // +Inf: rounds to nearest even, beyond the largest finite value
//
// All conversions to a narrow float round once, to nearest even. f16, bf16 and f8e5m2 overflow to infinity; f8e4m3 (no
// infinity, largest 448) saturates, infinities included. NaN stays NaN. Pure functions, any thread.
#pragma once
#include <tenon/types.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tenon::reference {

inline constexpr uint64_t bit(uint32_t dtype) { return uint64_t{1} << dtype; }
inline constexpr uint64_t kIntMask = bit(TN_U8) | bit(TN_I8) | bit(TN_U16) | bit(TN_I16) | bit(TN_U32) | bit(TN_I32) |
                                     bit(TN_U64) | bit(TN_I64);
inline constexpr uint64_t kNarrowMask = bit(TN_F8E4M3) | bit(TN_F8E5M2) | bit(TN_F16) | bit(TN_BF16);
inline constexpr uint64_t kScalarMask = kIntMask | kNarrowMask | bit(TN_BOOL) | bit(TN_F32) | bit(TN_F64);
inline constexpr uint64_t kMoveMask = kScalarMask | bit(TN_C64) | bit(TN_C128);

// Bytes of one element; 0 for types packed below a byte and for unknown ones.
inline constexpr uint32_t dtype_bytes(uint32_t dtype) {
#define TENON_SIZE_(name, id, bits) case id: return bits / 8;
  switch (dtype) { TN_DTYPES(TENON_SIZE_) default: return 0; }
#undef TENON_SIZE_
}
inline constexpr const char* dtype_name(uint32_t dtype) {
  switch (dtype) {
    case TN_BOOL: return "bool"; case TN_U4: return "u4"; case TN_I4: return "i4"; case TN_U8: return "u8";
    case TN_I8: return "i8"; case TN_U16: return "u16"; case TN_I16: return "i16"; case TN_U32: return "u32";
    case TN_I32: return "i32"; case TN_U64: return "u64"; case TN_I64: return "i64"; case TN_F8E4M3: return "f8e4m3";
    case TN_F8E5M2: return "f8e5m2"; case TN_F16: return "f16"; case TN_BF16: return "bf16"; case TN_F32: return "f32";
    case TN_F64: return "f64"; case TN_C64: return "c64"; case TN_C128: return "c128"; default: return "unknown";
  }
}
inline constexpr bool is_narrow_float(uint32_t dtype) { return dtype < 64 && (kNarrowMask >> dtype & 1) != 0; }
// What arithmetic is done in: f32 for narrow floats, else the type itself.
inline constexpr uint32_t compute_dtype(uint32_t dtype) { return is_narrow_float(dtype) ? uint32_t{TN_F32} : dtype; }

// ---- f32 <-> f16, bf16: branch-light, so that loops over them vectorise ----
inline float f16_to_f32(uint16_t h) {
  const uint32_t magnitude = static_cast<uint32_t>(h & 0x7FFF) << 13, sign = static_cast<uint32_t>(h & 0x8000) << 16;
  // Re-bias by multiplying with 2^112: exact also for subnormals, which become normal.
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const uint32_t special = magnitude | 0x7F800000u;  // Inf and NaN keep their payload
  return std::bit_cast<float>((magnitude >= 0x0F800000u ? special : std::bit_cast<uint32_t>(scaled)) | sign);
}
inline uint16_t f32_to_f16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  // Below 2^-14 the unit is 2^-24: adding 0.5 (whose unit in f32 is 2^-24) lets the hardware round.
  const uint32_t tiny = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
  const uint32_t normal = (magnitude - 0x38000000u + 0xFFF + (magnitude >> 13 & 1)) >> 13;
  const uint32_t big = magnitude > 0x7F800000u ? 0x7E00u : 0x7C00u;
  const uint32_t finite = magnitude < 0x38800000u ? tiny : normal;
  return static_cast<uint16_t>((magnitude >= 0x477FF000u ? big : finite) | sign);
}
inline float bf16_to_f32(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }
inline uint16_t f32_to_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
  return static_cast<uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000u ? quiet : rounded);
}

// ---- any narrow format from f64, rounding once ----
struct Format { int exponent_bits, mantissa_bits; bool has_infinity; };
inline constexpr Format kF16{5, 10, true}, kBf16{8, 7, true}, kE5m2{5, 2, true}, kE4m3{4, 3, false};

uint32_t encode(double x, Format f);        // the bits of x in format f
double decode(uint32_t bits, Format f);     // the exact value
double to_odd_double(uint64_t magnitude);   // an integer as f64 with a sticky last bit: rounding it again rounds once

// One element of any scalar dtype as f64 and back: for slow paths and for the tests' oracle-free plumbing.
double load_f64(const void* p, uint32_t dtype);
void store_f64(void* p, uint32_t dtype, double x);

}  // namespace tenon::reference
