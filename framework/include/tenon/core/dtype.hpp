// tenon/core/dtype.hpp - element types.
//
//   tenon::DType t = tenon::f32;   tenon::dtype_of<double>() == tenon::f64;   tenon::name(t) // "f32"
#pragma once
#include <tenon/types.h>

#include <cstdint>
#include <type_traits>

namespace tenon {

enum class DType : uint8_t {
  boolean = TN_BOOL, u8 = TN_U8, i8 = TN_I8, u16 = TN_U16, i16 = TN_I16, u32 = TN_U32, i32 = TN_I32, u64 = TN_U64,
  i64 = TN_I64, f8e4m3 = TN_F8E4M3, f8e5m2 = TN_F8E5M2, f16 = TN_F16, bf16 = TN_BF16, f32 = TN_F32, f64 = TN_F64,
};
inline constexpr DType boolean = DType::boolean, u8 = DType::u8, i8 = DType::i8, u16 = DType::u16, i16 = DType::i16,
                       u32 = DType::u32, i32 = DType::i32, u64 = DType::u64, i64 = DType::i64, f16 = DType::f16,
                       bf16 = DType::bf16, f32 = DType::f32, f64 = DType::f64;

constexpr bool is_float(DType t) { return t >= DType::f8e4m3 && t <= DType::f64; }
// The type in which arithmetic on `t` is done, and in which scalars travel: f32 for narrow floats, else `t` itself.
constexpr DType compute_type(DType t) { return is_float(t) && t != DType::f64 ? DType::f32 : t; }
constexpr int64_t size_bytes(DType t) {
  switch (t) {
    case DType::u16: case DType::i16: case DType::f16: case DType::bf16: return 2;
    case DType::u32: case DType::i32: case DType::f32: return 4;
    case DType::u64: case DType::i64: case DType::f64: return 8;
    default: return 1;
  }
}
// "f32", "bool"; static text.
const char* name(DType t);

// The element type of a C++ type; a compile error for types that tensors cannot hold.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return DType::boolean;
  else if constexpr (std::is_same_v<T, float>) return DType::f32;
  else if constexpr (std::is_same_v<T, double>) return DType::f64;
  else {
    static_assert(std::is_integral_v<T>, "no tensor element type for this C++ type");
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1) return is_signed ? DType::i8 : DType::u8;
    else if constexpr (sizeof(T) == 2) return is_signed ? DType::i16 : DType::u16;
    else if constexpr (sizeof(T) == 4) return is_signed ? DType::i32 : DType::u32;
    else return is_signed ? DType::i64 : DType::u64;
  }
}

}  // namespace tenon
