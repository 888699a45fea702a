// tests/gpu/host_dialect.h - the dialect's words in C++, so that the library's very text can be measured on the CPU. Like GLSL it
// has no fused multiply-add: what holds here does not rely on one.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

using tn_uint = uint32_t;
using tn_ulong = uint64_t;
using tn_long = int64_t;
#define tn_float float
#define tn_double double
#define TN_FN inline
#define TN_U8(x) static_cast<uint8_t>(x)
#define TN_U32(x) static_cast<uint32_t>(x)
#define TN_I32(x) static_cast<int32_t>(x)
#define TN_U64(x) static_cast<uint64_t>(x)
#define TN_I64(x) static_cast<int64_t>(x)
#define TN_F32(x) static_cast<float>(x)
#define TN_F64(x) static_cast<double>(x)
#define TN_BITS_OF_F32(x) std::bit_cast<uint32_t>(static_cast<float>(x))
#define TN_F32_OF_BITS(x) std::bit_cast<float>(static_cast<uint32_t>(x))
#define TN_BITS_OF_F64(x) std::bit_cast<uint64_t>(static_cast<double>(x))
#define TN_F64_OF_BITS(x) std::bit_cast<double>(static_cast<uint64_t>(x))
#define TN_MULHI(a, b) static_cast<uint32_t>(static_cast<uint64_t>(a) * (b) >> 32)
#define TN_CLZ(x) static_cast<uint32_t>(std::countl_zero(static_cast<uint32_t>(x)))
#define TN_TRUNC_F32(x) std::trunc(x)
#define TN_RINT_F32(x) std::rint(x)
#define TN_SQRT_F32(x) std::sqrt(x)
#define TN_TRUNC_F64(x) std::trunc(x)
#define TN_RINT_F64(x) std::rint(x)
#define TN_SQRT_F64(x) std::sqrt(x)
#define TN_DIV_IS_EXACT 0
#define TN_FMA_IS_FUSED 0
#define TN_MAD_F32(a, b, c) ((a) * (b) + (c))
#define TN_MAD_F64(a, b, c) ((a) * (b) + (c))
