// Every opcode over every element type, against long double or 128-bit integer arithmetic written out here.
#include <cmath>
#include <limits>

#include "ops/reference/cast.h"
#include "ops/reference/eval.h"
#include "tests/reference/helpers.h"

namespace tenon::reference::testing {
namespace {

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UWide;

template <class T> std::vector<T> special_floats() {
  using L = std::numeric_limits<T>;
  return {T(0), -T(0), T(1), T(-1), T(0.5), T(-0.5), T(1.5), T(2.5), T(-2.5), L::infinity(), -L::infinity(), L::quiet_NaN(),
          L::max(), L::lowest(), L::min(), L::denorm_min(), -L::denorm_min(), T(3), T(-7), T(8388607.5), T(1e10), T(100.25), T(1e-5), T(0.3)};
}
template <class T> std::vector<T> special_ints() {
  using L = std::numeric_limits<T>;
  std::vector<T> v = {T(0), T(1), T(2), T(3), T(5), T(7), T(8), T(100), L::max(), T(L::max() - 1), L::min(), T(L::min() + 1)};
  if constexpr (std::is_signed_v<T>) v.insert(v.end(), {T(-1), T(-2), T(-3), T(-8)});
  return v;
}
template <class T> void all_pairs(const std::vector<T>& v, std::vector<T>* a, std::vector<T>* b) {
  for (T x : v) for (T y : v) a->push_back(x), b->push_back(y);
}
// Distance in ULP of T between a value and the exact result.
template <class T> double ulps(T got, long double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e30;
  const T rounded = static_cast<T>(want);
  if (got == rounded && std::signbit(got) == std::signbit(rounded)) return 0;
  if (std::isinf(rounded) || std::isinf(got) || std::isnan(got)) return 1e30;
  const T unit = std::nextafter(std::fabs(rounded), std::numeric_limits<T>::infinity()) - std::fabs(rounded);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / static_cast<long double>(unit));
}

struct FloatCase { uint8_t op; int operands; double ulp32, ulp64; long double (*exact)(long double, long double, long double); };
using LD = long double;
LD sign_ld(LD x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
LD least_ld(LD a, LD b) { return std::isnan(a) || std::isnan(b) ? NAN : a == b ? (std::signbit(a) ? a : b) : a < b ? a : b; }
LD most_ld(LD a, LD b) { return std::isnan(a) || std::isnan(b) ? NAN : a == b ? (std::signbit(a) ? b : a) : a > b ? a : b; }
const FloatCase kFloatCases[] = {
    {TN_OP_NEG, 1, 0, 0, [](LD x, LD, LD) { return -x; }}, {TN_OP_ABS, 1, 0, 0, [](LD x, LD, LD) { return std::fabs(x); }},
    {TN_OP_SIGN, 1, 0, 0, [](LD x, LD, LD) { return sign_ld(x); }}, {TN_OP_FLOOR, 1, 0, 0, [](LD x, LD, LD) { return std::floor(x); }},
    {TN_OP_CEIL, 1, 0, 0, [](LD x, LD, LD) { return std::ceil(x); }}, {TN_OP_TRUNC, 1, 0, 0, [](LD x, LD, LD) { return std::trunc(x); }},
    {TN_OP_RINT, 1, 0, 0, [](LD x, LD, LD) { return std::rint(x); }}, {TN_OP_SQRT, 1, 0.5, 0.5, [](LD x, LD, LD) { return std::sqrt(x); }},
    {TN_OP_RSQRT, 1, 2, 2, [](LD x, LD, LD) { return 1 / std::sqrt(x); }}, {TN_OP_EXP, 1, 3, 1, [](LD x, LD, LD) { return std::exp(x); }},
    {TN_OP_EXPM1, 1, 3, 2, [](LD x, LD, LD) { return std::expm1(x); }}, {TN_OP_LOG, 1, 3, 1, [](LD x, LD, LD) { return std::log(x); }},
    {TN_OP_LOG1P, 1, 3, 2, [](LD x, LD, LD) { return std::log1p(x); }}, {TN_OP_SIN, 1, 4, 2, [](LD x, LD, LD) { return std::sin(x); }},
    {TN_OP_COS, 1, 4, 2, [](LD x, LD, LD) { return std::cos(x); }}, {TN_OP_ATAN, 1, 4, 2, [](LD x, LD, LD) { return std::atan(x); }},
    {TN_OP_TANH, 1, 5, 2, [](LD x, LD, LD) { return std::tanh(x); }}, {TN_OP_ERF, 1, 8, 4, [](LD x, LD, LD) { return std::erf(x); }},
    {TN_OP_ADD, 2, 0.5, 0.5, [](LD a, LD b, LD) { return a + b; }}, {TN_OP_SUB, 2, 0.5, 0.5, [](LD a, LD b, LD) { return a - b; }},
    {TN_OP_MUL, 2, 0.5, 0.5, [](LD a, LD b, LD) { return a * b; }}, {TN_OP_DIV, 2, 0.5, 0.5, [](LD a, LD b, LD) { return a / b; }},
    {TN_OP_REM, 2, 0, 0, [](LD a, LD b, LD) { return std::fmod(a, b); }}, {TN_OP_POW, 2, 16, 4, [](LD a, LD b, LD) { return std::pow(a, b); }},
    {TN_OP_MIN, 2, 0, 0, [](LD a, LD b, LD) { return least_ld(a, b); }}, {TN_OP_MAX, 2, 0, 0, [](LD a, LD b, LD) { return most_ld(a, b); }},
    {TN_OP_ATAN2, 2, 6, 4, [](LD a, LD b, LD) { return std::atan2(a, b); }}, {TN_OP_FMA, 3, 0.5, 0.5, [](LD a, LD b, LD c) { return std::fma(a, b, c); }},
};

template <class T> void check_floats() {
  std::vector<T> a, b;
  all_pairs(special_floats<T>(), &a, &b);
  const std::vector<T> c(b.rbegin(), b.rend());
  for (const FloatCase& f : kFloatCases) {
    std::vector<std::vector<T>> in = {a, b, c};
    in.resize(static_cast<size_t>(f.operands));
    const std::vector<T> got = apply<T>(f.op, dtype_of<T>(), dtype_of<T>(), in);
    const double bound = sizeof(T) == 4 ? f.ulp32 : f.ulp64;
    for (size_t i = 0; i < got.size(); ++i)
      // 0.001: the exact value itself is rounded to 64 bits by the oracle.
      EXPECT_LE(ulps<T>(got[i], f.exact(a[i], b[i], c[i])), bound + 0.001) << "opcode " << int{f.op} << " of " << a[i] << ", " << b[i] << ", " << c[i] << " gave " << got[i];
  }
}
TEST(Program, f32_opcodes_are_within_their_ulp_bound) { check_floats<float>(); }
TEST(Program, f64_opcodes_are_within_their_ulp_bound) { check_floats<double>(); }

template <class T> void check_float_comparisons() {
  std::vector<T> a, b;
  all_pairs(special_floats<T>(), &a, &b);
  const auto check = [&](uint8_t op, bool (*want)(T, T)) {
    const auto got = apply<uint8_t>(op, TN_BOOL, dtype_of<T>(), std::vector<std::vector<T>>{a, b});
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], want(a[i], b[i])) << int{op} << ": " << a[i] << ", " << b[i];
  };
  check(TN_OP_LT, [](T x, T y) { return std::isless(x, y); });
  check(TN_OP_LE, [](T x, T y) { return std::islessequal(x, y); });
  check(TN_OP_EQ, [](T x, T y) { return !std::isunordered(x, y) && !std::islessgreater(x, y); });
  check(TN_OP_NE, [](T x, T y) { return std::isunordered(x, y) || std::islessgreater(x, y); });
  const auto nan = apply<uint8_t>(TN_OP_ISNAN, TN_BOOL, dtype_of<T>(), std::vector<std::vector<T>>{a});
  for (size_t i = 0; i < nan.size(); ++i) EXPECT_EQ(nan[i], std::isnan(a[i]));
}
TEST(Program, comparisons_with_nan_are_false_but_not_equal_is_true) { check_float_comparisons<float>(), check_float_comparisons<double>(); }

// Integer results as 128-bit arithmetic, then wrapped to T.
template <class T> Wide int_oracle(uint8_t op, Wide a, Wide b, Wide c) {
  constexpr int bits = sizeof(T) * 8;
  switch (op) {
    case TN_OP_NEG: return -a;
    case TN_OP_ABS: return a < 0 ? -a : a;
    case TN_OP_SIGN: return a > 0 ? 1 : a < 0 ? -1 : 0;
    case TN_OP_FLOOR: case TN_OP_CEIL: case TN_OP_TRUNC: case TN_OP_RINT: return a;
    case TN_OP_NOT: return -a - 1;
    case TN_OP_ADD: return a + b;
    case TN_OP_SUB: return a - b;
    case TN_OP_MUL: return static_cast<Wide>(static_cast<UWide>(a) * static_cast<UWide>(b));
    case TN_OP_DIV: return b == 0 ? 0 : a / b;
    case TN_OP_REM: return b == 0 ? 0 : a % b;
    case TN_OP_MIN: return a < b ? a : b;
    case TN_OP_MAX: return a > b ? a : b;
    case TN_OP_FMA: return static_cast<Wide>(static_cast<UWide>(a) * static_cast<UWide>(b) + static_cast<UWide>(c));
    case TN_OP_AND: return a & b;
    case TN_OP_OR: return a | b;
    case TN_OP_XOR: return a ^ b;
    case TN_OP_SHL: return b < 0 || b >= bits ? 0 : static_cast<Wide>(static_cast<UWide>(a) << static_cast<int>(b));
    case TN_OP_SHR: return b < 0 || b >= bits ? (a < 0 ? -1 : 0) : a >> static_cast<int>(b);
    case TN_OP_LT: return a < b;
    case TN_OP_LE: return a <= b;
    case TN_OP_EQ: return a == b;
    case TN_OP_NE: return a != b;
    case TN_OP_ISNAN: return 0;
    case TN_OP_POW: {
      if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 != 0 ? -1 : 1) : 0;
      uint64_t r = 1, base = static_cast<uint64_t>(a);
      for (uint64_t e = static_cast<uint64_t>(b); e != 0; e >>= 1, base *= base) if ((e & 1) != 0) r *= base;
      return static_cast<Wide>(r);
    }
    default: return 0;
  }
}
template <class T> void check_ints() {
  std::vector<T> a, b;
  all_pairs(special_ints<T>(), &a, &b);
  const std::vector<T> c(b.rbegin(), b.rend());
  const auto check = [&](uint8_t op, int operands, bool to_bool) {
    std::vector<std::vector<T>> in = {a, b, c};
    in.resize(static_cast<size_t>(operands));
    std::vector<T> got(a.size());
    if (to_bool) {
      const auto bytes = apply<uint8_t>(op, TN_BOOL, dtype_of<T>(), in);
      std::copy(bytes.begin(), bytes.end(), got.begin());
    } else {
      got = apply<T>(op, dtype_of<T>(), dtype_of<T>(), in);
    }
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(got[i], static_cast<T>(int_oracle<T>(op, a[i], b[i], c[i]))) << "opcode " << int{op} << " dtype " << dtype_of<T>() << " of " << +a[i] << ", " << +b[i];
  };
  for (uint8_t op : {TN_OP_NEG, TN_OP_ABS, TN_OP_SIGN, TN_OP_FLOOR, TN_OP_CEIL, TN_OP_TRUNC, TN_OP_RINT, TN_OP_NOT}) check(op, 1, false);
  check(TN_OP_ISNAN, 1, true);
  for (uint8_t op : {TN_OP_ADD, TN_OP_SUB, TN_OP_MUL, TN_OP_DIV, TN_OP_REM, TN_OP_POW, TN_OP_MIN, TN_OP_MAX, TN_OP_AND, TN_OP_OR, TN_OP_XOR, TN_OP_SHL, TN_OP_SHR}) check(op, 2, false);
  for (uint8_t op : {TN_OP_LT, TN_OP_LE, TN_OP_EQ, TN_OP_NE}) check(op, 2, true);
  check(TN_OP_FMA, 3, false);
}
TEST(Program, integers_wrap_and_never_trap) {
  check_ints<uint8_t>(), check_ints<int8_t>(), check_ints<uint16_t>(), check_ints<int16_t>();
  check_ints<uint32_t>(), check_ints<int32_t>(), check_ints<uint64_t>(), check_ints<int64_t>();
}

// onnx/onnx#7570, #4016, microsoft/onnxruntime#26997: division floors in one place and truncates in another.
TEST(Program, K03_integer_division_truncates_and_remainder_has_the_sign_of_the_dividend) {
  const std::vector<int64_t> a = {8, -8, 7, -7, -11}, b = {-3, 3, -2, 2, 3};
  EXPECT_EQ((apply<int64_t, int64_t>(TN_OP_DIV, TN_I64, TN_I64, {a, b})), (std::vector<int64_t>{-2, -2, -3, -3, -3}));
  EXPECT_EQ((apply<int64_t, int64_t>(TN_OP_REM, TN_I64, TN_I64, {a, b})), (std::vector<int64_t>{2, -2, 1, -1, -2}));
  std::vector<int8_t> x, y;
  for (int i = -128; i < 128; ++i) for (int j = -128; j < 128; ++j) if (j != 0) x.push_back(static_cast<int8_t>(i)), y.push_back(static_cast<int8_t>(j));
  const auto q = apply<int8_t, int8_t>(TN_OP_DIV, TN_I8, TN_I8, {x, y}), r = apply<int8_t, int8_t>(TN_OP_REM, TN_I8, TN_I8, {x, y});
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], static_cast<int8_t>(q[i] * y[i] + r[i]));
}

// pytorch/pytorch#180159, #140347, #154727: NaN and infinity to integer differ by backend, and vector body by tail.
TEST(Program, K06_float_to_integer_saturates_and_nan_is_zero_at_every_length) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {NAN, inf, -inf, 3e9f, -3e9f, 1.9f, -1.9f, -0.5f};
  const std::vector<int32_t> want = {0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 1, -1, 0};
  const std::vector<uint8_t> want8 = {0, 255, 0, 255, 0, 1, 0, 0};
  for (size_t n = 1; n <= 40; ++n) {
    std::vector<float> in(n);
    for (size_t i = 0; i < n; ++i) in[i] = x[i % x.size()];
    const auto got = apply<int32_t, float>(TN_OP_CAST, TN_I32, TN_F32, {in});
    const auto got8 = apply<uint8_t, float>(TN_OP_CAST, TN_U8, TN_F32, {in});
    for (size_t i = 0; i < n; ++i) { ASSERT_EQ(got[i], want[i % x.size()]) << n; ASSERT_EQ(got8[i], want8[i % x.size()]) << n; }
  }
  EXPECT_EQ((apply<int64_t, double>(TN_OP_CAST, TN_I64, TN_F64, {{9.3e18, -9.3e18, NAN, 9223372036854774784.0}})), (std::vector<int64_t>{INT64_MAX, INT64_MIN, 0, 9223372036854774784}));
  EXPECT_EQ((apply<uint64_t, float>(TN_OP_CAST, TN_U64, TN_F32, {{1.9e19f, -1.f, NAN, 16.7f}})), (std::vector<uint64_t>{UINT64_MAX, 0, 0, 16}));
  EXPECT_EQ((apply<int8_t, uint16_t>(TN_OP_CAST, TN_I8, TN_F16, {{0x7C00, 0xFC00, 0x7E00, 0x5800}})), (std::vector<int8_t>{127, -128, 0, 127}));
}

// pytorch/pytorch#16498, tensorflow#58517: exact halves, and the sign of -0.5.
TEST(Program, K09_rounding_goes_to_even_and_keeps_the_sign_of_zero) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {-2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f, 8388607.5f, 1e10f, inf, -inf}, want = {-2, -2, -0.f, 0, 2, 2, 8388608.f, 1e10f, inf, -inf};
  for (size_t n = 1; n <= 17; ++n) {
    std::vector<float> in(n);
    for (size_t i = 0; i < n; ++i) in[i] = x[i % x.size()];
    const auto got = apply<float, float>(TN_OP_RINT, TN_F32, TN_F32, {in});
    for (size_t i = 0; i < n; ++i) { ASSERT_EQ(got[i], want[i % x.size()]); ASSERT_EQ(std::signbit(got[i]), std::signbit(want[i % x.size()])); }
  }
}

// A narrow float is right if no other value of the format is nearer, and of two equally near the even one was taken.
void check_nearest(uint32_t dtype, Format f, uint32_t count, bool saturates) {
  std::vector<double> value(count);
  for (uint32_t i = 0; i < count; ++i) value[i] = decode(i, f);
  const double largest = [&] { double m = 0; for (double v : value) if (std::isfinite(v) && v > m) m = v; return m; }();
  for (uint32_t i = 0; i + 1 < count; ++i) {
    if (!std::isfinite(value[i]) || !std::isfinite(value[i + 1]) || std::signbit(value[i]) != std::signbit(value[i + 1])) continue;
    const double mid = (value[i] + value[i + 1]) / 2;
    ASSERT_EQ(encode(mid, f), i % 2 == 0 ? i : i + 1) << "tie above " << value[i];
    ASSERT_EQ(encode(std::nextafter(mid, value[i]), f), i); ASSERT_EQ(encode(std::nextafter(mid, value[i + 1]), f), i + 1);
    ASSERT_EQ(encode(value[i], f), i);
    uint32_t got = 0;
    const float x = static_cast<float>(mid);  // exact: one bit more than the format
    cast_fn(TN_F32, dtype)(1, &got, &x);
    ASSERT_EQ(got, i % 2 == 0 ? i : i + 1) << "f32 tie above " << value[i];
  }
  EXPECT_EQ(std::isinf(decode(encode(largest * 1.5, f), f)), !saturates);
  EXPECT_EQ(decode(encode(std::numeric_limits<double>::infinity(), f), f) == largest, saturates);
  EXPECT_TRUE(std::isnan(decode(encode(NAN, f), f)));
}
TEST(Cast, narrow_floats_round_once_to_nearest_even_and_round_trip) {
  check_nearest(TN_F16, kF16, 65536, false), check_nearest(TN_BF16, kBf16, 65536, false);
  check_nearest(TN_F8E5M2, kE5m2, 256, false), check_nearest(TN_F8E4M3, kE4m3, 256, true);
}
TEST(Cast, fast_f16_paths_agree_with_the_exact_ones_for_every_pattern) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const float x = f16_to_f32(static_cast<uint16_t>(i));
    const double y = decode(i, kF16);
    ASSERT_TRUE(x == y || (std::isnan(x) && std::isnan(y))) << i;
    if (!std::isnan(x)) { ASSERT_EQ(f32_to_f16(x), i); }
  }
}
TEST(Cast, published_values_of_the_formats) {  // IEEE 754 binary16; OCP 8-bit floating point specification 1.0
  EXPECT_EQ(decode(0x7BFF, kF16), 65504); EXPECT_EQ(decode(0x0001, kF16), 0x1p-24);
  EXPECT_EQ(decode(0x7E, kE4m3), 448); EXPECT_EQ(decode(0x01, kE4m3), 0x1p-9); EXPECT_EQ(decode(0x7B, kE5m2), 57344); EXPECT_EQ(decode(0x01, kE5m2), 0x1p-16);
  EXPECT_EQ(encode(1e9, kE4m3), 0x7Eu); EXPECT_EQ(f32_to_f16(65520.f), 0x7C00); EXPECT_EQ(f32_to_f16(65519.f), 0x7BFF);
}
TEST(Cast, large_integers_to_bf16_round_once) {
  const int64_t tie = (int64_t{257} << 54) + 1;  // just above halfway between 256 and 258 times 2^54
  EXPECT_EQ((apply<uint16_t, int64_t>(TN_OP_CAST, TN_BF16, TN_I64, {{tie, -tie, tie - 1}})),
            (std::vector<uint16_t>{static_cast<uint16_t>(encode(258.0 * 0x1p54, kBf16)), static_cast<uint16_t>(encode(-258.0 * 0x1p54, kBf16)), static_cast<uint16_t>(encode(256.0 * 0x1p54, kBf16))}));
}
TEST(Cast, integers_wrap_and_bool_is_not_equal_zero) {
  EXPECT_EQ((apply<int8_t, int32_t>(TN_OP_CAST, TN_I8, TN_I32, {{300, -129, 127}})), (std::vector<int8_t>{44, 127, 127}));
  EXPECT_EQ((apply<uint8_t, float>(TN_OP_CAST, TN_BOOL, TN_F32, {{0.f, -0.f, NAN, 0.1f}})), (std::vector<uint8_t>{0, 0, 1, 1}));
}

TEST(Program, bool_logic_select_and_bitcast) {
  const std::vector<uint8_t> a = {0, 0, 1, 2}, b = {0, 1, 0, 1};
  EXPECT_EQ((apply<uint8_t, uint8_t>(TN_OP_AND, TN_BOOL, TN_BOOL, {a, b})), (std::vector<uint8_t>{0, 0, 0, 1}));
  EXPECT_EQ((apply<uint8_t, uint8_t>(TN_OP_XOR, TN_BOOL, TN_BOOL, {a, b})), (std::vector<uint8_t>{0, 1, 1, 0}));
  EXPECT_EQ((apply<uint8_t, uint8_t>(TN_OP_OR, TN_BOOL, TN_BOOL, {a, b})), (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ((apply<uint8_t, uint8_t>(TN_OP_NOT, TN_BOOL, TN_BOOL, {a})), (std::vector<uint8_t>{1, 1, 0, 0}));
  EXPECT_EQ((apply<uint32_t, float>(TN_OP_BITCAST, TN_U32, TN_F32, {{1.f, -0.f}})), (std::vector<uint32_t>{0x3F800000u, 0x80000000u}));
  ProgramText p;
  p.inst = {{TN_OP_INPUT, TN_BOOL, 0, 0, 0}, {TN_OP_INPUT, TN_F32, 1, 0, 0}, {TN_OP_CONST, TN_F32, 1, 0, 0}, {TN_OP_SELECT, TN_F32, 0, 1, 2}};
  p.out = {3}, p.n_in = 2, p.n_slots = 2;
  const tn_program view = p.view();
  const float x[] = {1, 2, NAN, 4}, slots_value = 9;
  uint64_t push[2] = {};
  std::memcpy(&push[1], &slots_value, 4);
  float out[4];
  ASSERT_EQ(execute(TN_OPID_POINTWISE, {type_of(TN_BOOL, {4}), type_of(TN_F32, {4}), type_of(TN_F32, {4})}, 1, {attr_of(TN_KEY_PROGRAM, view)},
                    {raw(a), const_cast<float*>(x), out}, push), TN_OK);
  EXPECT_EQ(out[0], 9); EXPECT_EQ(out[1], 9); EXPECT_TRUE(std::isnan(out[2])); EXPECT_EQ(out[3], 4);
}

TEST(Program, an_instruction_without_meaning_is_refused_with_its_number) {
  const ProgramText p = single(TN_OP_ADD, TN_F16, TN_F16, 2);
  const tn_program view = p.view();
  tn_diag diag{};
  uint16_t x[1] = {};
  EXPECT_EQ(execute(TN_OPID_POINTWISE, {type_of(TN_F16, {1}), type_of(TN_F16, {1}), type_of(TN_F16, {1})}, 1, {attr_of(TN_KEY_PROGRAM, view)}, {x, x, x}, nullptr, &diag), TN_E_UNSUPPORTED);
  EXPECT_NE(std::strstr(diag.msg, "instruction 2"), nullptr) << diag.msg;
}

}  // namespace
}  // namespace tenon::reference::testing
