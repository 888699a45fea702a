// tests/gpu/math_test.cpp - the kernel library's own functions against long double: error bounds of types.h, special values.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/gpu/host_dialect.h"

#include "ops/reference/cast.h"
#include "ops/reference/dtype.h"

namespace library {
#include "gpu_library.inc"
}

namespace {

using Wide = long double;

// The distance of `got` from `exact` in units of the last place of the type; subnormal results may be zero of their sign.
template <class T> double ulps(T got, Wide exact) {
  if (std::isnan(got) || std::isnan(exact)) return std::isnan(got) == std::isnan(exact) ? 0 : INFINITY;
  const T nearest = static_cast<T>(exact);
  if (std::isinf(got) || std::isinf(nearest)) {
    if (got == nearest) return 0;
    const Wide largest = std::numeric_limits<T>::max();
    return std::fabs(exact) > largest * 0.9999999L || std::fabs(static_cast<Wide>(got)) > largest ? 1 : INFINITY;
  }
  if (std::fabs(exact) < std::numeric_limits<T>::min() && got == 0) return std::signbit(got) == std::signbit(nearest) ? 0 : INFINITY;
  int e = 0;
  std::frexp(exact == 0 ? std::numeric_limits<T>::denorm_min() : exact, &e);
  e = std::max(e, std::numeric_limits<T>::min_exponent);
  return static_cast<double>(std::fabs(static_cast<Wide>(got) - exact) / std::ldexp(Wide(1), e - std::numeric_limits<T>::digits));
}

template <class T> std::vector<T> arguments(int n, double low, double high, unsigned seed) {
  std::vector<T> v = {0, -T(0), 1, -1, T(0.5), T(-0.5), 2, -2, std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                      std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::max(), std::numeric_limits<T>::lowest(),
                      std::numeric_limits<T>::min(), std::numeric_limits<T>::denorm_min(), -std::numeric_limits<T>::denorm_min(),
                      std::nextafter(T(1), T(0)), std::nextafter(T(1), T(2)), T(0.78539816339744831), T(1.5707963267948966), T(3.1415926535897931)};
  std::mt19937_64 random(seed);
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  for (int i = 0; i < n; ++i) v.push_back(std::bit_cast<T>(static_cast<Bits>(random())));  // all exponents
  std::uniform_real_distribution<double> near(low, high);
  for (int i = 0; i < n; ++i) v.push_back(static_cast<T>(near(random)));
  for (int i = 0; i <= n; ++i) v.push_back(static_cast<T>(low + (high - low) * i / n));
  return v;
}

constexpr int kMany = 60000;

template <class T, class F, class G> void unary(const char* name, F f, G exact, double low, double high, double bound) {
  double worst = 0;
  T at = 0;
  for (T x : arguments<T>(kMany, low, high, 7))
    if (const double u = ulps(f(x), exact(Wide(x))); u > worst) worst = u, at = x;
  std::printf("%-12s f%d max %.3f ULP (bound %g) at %.17g\n", name, static_cast<int>(sizeof(T) * 8), worst, bound, double(at));
  EXPECT_LE(worst, bound) << name << " at " << at << ": " << f(at) << " for " << exact(Wide(at));
}
template <class T, class F, class G> void binary(const char* name, F f, G exact, double low, double high, double bound) {
  double worst = 0;
  T at = 0, bt = 0;
  const std::vector<T> xs = arguments<T>(kMany, low, high, 11), ys = arguments<T>(kMany, low, high, 13);
  auto one = [&](T x, T y) {
    if (const double u = ulps(f(x, y), exact(Wide(x), Wide(y))); u > worst) worst = u, at = x, bt = y;
  };
  for (int i = 0; i < 21; ++i)
    for (int j = 0; j < 21; ++j) one(xs[i], ys[j]);
  for (size_t i = 0; i < xs.size(); ++i) one(xs[i], ys[(i * 7919) % ys.size()]), one(xs[i], ys[i]);
  std::printf("%-12s f%d max %.3f ULP (bound %g) at %.17g, %.17g\n", name, static_cast<int>(sizeof(T) * 8), worst, bound, double(at), double(bt));
  EXPECT_LE(worst, bound) << name << " at " << at << ", " << bt << ": " << f(at, bt) << " for " << exact(Wide(at), Wide(bt));
}

#define UNARY(name, exact, low, high, bound32, bound64) \
  TEST(GpuMath, name##_keeps_its_bound) { \
    unary<float>(#name, [](float x) { return library::tn_##name##_f32(x); }, [](Wide x) -> Wide { return exact; }, low, high, bound32); \
    unary<double>(#name, [](double x) { return library::tn_##name##_f64(x); }, [](Wide x) -> Wide { return exact; }, low, high, bound64); \
  }
#define BINARY(name, exact, low, high, bound32, bound64) \
  TEST(GpuMath, name##_keeps_its_bound) { \
    binary<float>(#name, [](float x, float y) { return library::tn_##name##_f32(x, y); }, [](Wide x, Wide y) -> Wide { return exact; }, low, high, bound32); \
    binary<double>(#name, [](double x, double y) { return library::tn_##name##_f64(x, y); }, [](Wide x, Wide y) -> Wide { return exact; }, low, high, bound64); \
  }

UNARY(sqrt, sqrtl(x), 0, 100, 1, 0.5001)
UNARY(rsqrt, 1 / sqrtl(x), 0, 100, 2, 2)
UNARY(exp, expl(x), -110, 90, 3, 1)
UNARY(expm1, expm1l(x), -3, 3, 3, 2)
UNARY(log, logl(x), 0.3, 3, 3, 1)
UNARY(log1p, log1pl(x), -1, 3, 3, 2)
UNARY(sin, sinl(x), -30, 30, 4, 2)
UNARY(cos, cosl(x), -30, 30, 4, 2)
UNARY(atan, atanl(x), -4, 4, 4, 2)
UNARY(tanh, tanhl(x), -4, 4, 5, 2)
UNARY(erf, erfl(x), -5, 5, 8, 4)
BINARY(div, x / y, -10, 10, 2.5, 0.5001)
BINARY(rem, fmodl(x, y), -100, 100, 0, 0)
BINARY(pow, powl(x, y), -20, 20, 16, 4)
BINARY(atan2, atan2l(x, y), -4, 4, 6, 4)

TEST(GpuMath, pow_is_close_near_one_with_large_exponents) {
  std::mt19937_64 random(5);
  double worst32 = 0, worst64 = 0;
  for (int i = 0; i < 200000; ++i) {
    const double x = std::exp(std::uniform_real_distribution<double>(-3, 3)(random)), y = std::uniform_real_distribution<double>(-1, 1)(random) * 709 / std::log(x);
    worst64 = std::max(worst64, ulps(library::tn_pow_f64(x, y), powl(x, y)));
    const float xf = static_cast<float>(x), yf = static_cast<float>(y / 8);
    worst32 = std::max(worst32, ulps(library::tn_pow_f32(xf, yf), powl(xf, yf)));
  }
  std::printf("pow, results of all sizes: f32 %.3f, f64 %.3f ULP\n", worst32, worst64);
  EXPECT_LE(worst32, 16);
  EXPECT_LE(worst64, 4);
}

TEST(GpuMath, fma_rounds_once) {
  std::mt19937_64 random(3);
  auto pick = [&](auto zero) {
    using T = decltype(zero);
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    return random() % 4 == 0 ? std::bit_cast<T>(static_cast<Bits>(random())) : static_cast<T>(std::ldexp(static_cast<double>(static_cast<int32_t>(random())), static_cast<int>(random() % 70) - 60));
  };
  auto same = [](auto got, auto want) {
    if (std::isnan(want)) return std::isnan(got);
    if (std::fabs(want) < std::numeric_limits<decltype(want)>::min()) return std::fabs(got - want) <= std::numeric_limits<decltype(want)>::denorm_min();
    return got == want && std::signbit(got) == std::signbit(want);
  };
  for (int i = 0; i < 300000; ++i) {
    const float a = pick(0.0f), b = pick(0.0f), c = i % 3 == 0 ? -a * b : pick(0.0f);
    ASSERT_TRUE(same(library::tn_fma_f32(a, b, c), std::fma(a, b, c))) << a << " * " << b << " + " << c;
    const double d = pick(0.0), e = pick(0.0), f = i % 3 == 0 ? -d * e : pick(0.0);
    ASSERT_TRUE(same(library::tn_fma_f64(d, e, f), std::fma(d, e, f))) << d << " * " << e << " + " << f;
  }
}

TEST(GpuMath, narrow_floats_convert_exactly_and_round_to_nearest_even) {
  namespace reference = tenon::reference;
  for (uint32_t b = 0; b < 65536; ++b) {
    const float f16 = reference::f16_to_f32(static_cast<uint16_t>(b)), got = library::tn_f16_to_f32(b);
    ASSERT_TRUE(std::isnan(f16) ? std::isnan(got) : std::bit_cast<uint32_t>(f16) == std::bit_cast<uint32_t>(got)) << b;
    if (b >= 256) continue;
    const auto e5 = static_cast<float>(reference::decode(b, reference::kE5m2)), e4 = static_cast<float>(reference::decode(b, reference::kE4m3));
    ASSERT_TRUE(std::isnan(e5) ? std::isnan(library::tn_f8e5m2_to_f32(b)) : e5 == library::tn_f8e5m2_to_f32(b)) << b;
    ASSERT_TRUE(std::isnan(e4) ? std::isnan(library::tn_f8e4m3_to_f32(b)) : e4 == library::tn_f8e4m3_to_f32(b)) << b;
  }
  for (uint64_t bits = 0; bits <= 0xFFFFFFFFu; bits += 12289) {  // prime step over all f32; ties are met by the low bits below
    for (uint32_t low : {0u, 0x1000u, 0x8000u, 0x100000u, 0x200000u, 0x80000u}) {
      const float x = std::bit_cast<float>(low == 0 ? static_cast<uint32_t>(bits) : (static_cast<uint32_t>(bits) & ~(2 * low - 1)) | low);
      if (std::isnan(x)) continue;
      ASSERT_EQ(library::tn_f32_to_f16(x), reference::encode(x, reference::kF16)) << x;
      ASSERT_EQ(library::tn_f32_to_bf16(x), reference::encode(x, reference::kBf16)) << x;
      ASSERT_EQ(library::tn_f32_to_f8e5m2(x), reference::encode(x, reference::kE5m2)) << x;
      ASSERT_EQ(library::tn_f32_to_f8e4m3(x), reference::encode(x, reference::kE4m3)) << x;
    }
  }
}

TEST(GpuMath, f64_and_integers_reach_narrow_floats_by_one_rounding) {
  namespace reference = tenon::reference;
  std::mt19937_64 random(9);
  for (int i = 0; i < 300000; ++i) {
    const double x = std::ldexp(static_cast<double>(static_cast<int64_t>(random())), -63 + static_cast<int>(random() % 300) - 160);
    const double y = i % 2 == 0 ? x : static_cast<double>(static_cast<float>(x)) * (1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -50));
    ASSERT_EQ(library::tn_f32_to_f16(library::tn_odd_f32(y)), reference::encode(y, reference::kF16)) << y;
    ASSERT_EQ(library::tn_f32_to_bf16(library::tn_odd_f32(y)), reference::encode(y, reference::kBf16)) << y;
    ASSERT_EQ(library::tn_f64_to_f32(y), static_cast<float>(y)) << y;
    const uint64_t u = random() >> (random() % 64);
    ASSERT_EQ(library::tn_f32_to_bf16(library::tn_odd_f32_of_u64(u)), reference::encode(reference::to_odd_double(u), reference::kBf16)) << u;
    ASSERT_EQ(library::tn_f32_to_bf16(library::tn_odd_f32_of_u32(static_cast<uint32_t>(u))), reference::encode(static_cast<uint32_t>(u), reference::kBf16)) << u;
  }
}

TEST(GpuMath, minimum_and_maximum_let_nan_win_and_order_zeros) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(library::tn_min_f32(nan, 1)) && std::isnan(library::tn_min_f32(1, nan)) && std::isnan(library::tn_max_f64(nan, 1)));
  EXPECT_TRUE(std::signbit(library::tn_min_f32(0.0f, -0.0f)) && std::signbit(library::tn_min_f64(-0.0, 0.0)));
  EXPECT_FALSE(std::signbit(library::tn_max_f32(0.0f, -0.0f)) || std::signbit(library::tn_max_f64(-0.0, 0.0)));
}

TEST(GpuMath, philox_gives_the_published_block) {  // counter 0, key 0 of Random123's known answers
  EXPECT_EQ(library::tn_philox(0, 0, 0, 0, 0), 0x6627e8d5u);
  EXPECT_EQ(library::tn_philox(0, 0, 0, 0, 3), 0x9b00dbd8u);
}

}  // namespace
