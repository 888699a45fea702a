// The pointwise rows: every opcode against long double, special values, lengths, strides, aliasing, symbols.
#include "tests/cpu/harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace tenon::test {
namespace {

const char* const kDense = "cpu.pointwise.dense";
const char* const kStrided = "cpu.pointwise.strided";
constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

class Pointwise : public testing::TestWithParam<const char*> {
 protected:
  Pack pack{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(InstructionSets, Pointwise, testing::Values("baseline", "avx2", "avx512"), [](auto& i) { return std::string(i.param); });

Prog unary(uint32_t op, uint32_t type) {
  Prog p;
  return p.out(p.add(op, type, p.in(0, type)));
}
Prog binary(uint32_t op, uint32_t type, uint32_t result) {
  Prog p;
  const uint16_t a = p.in(0, type), b = p.in(1, type);
  return p.out(p.add(op, result, a, b));
}
template <class T>
std::vector<T> run1(Pack& pack, uint32_t op, uint32_t type, std::vector<T> x) {
  const int64_t n = int64_t(x.size());
  Prog p = unary(op, type);
  Op o(TN_OPID_POINTWISE);
  o.in(type, {n}).out(type, {n}).program(TN_KEY_PROGRAM, p);
  std::vector<T> y(x.size(), T(-77));
  EXPECT_EQ(pack.run(kDense, o, {x.data(), y.data()}), TN_OK);
  return y;
}
template <class T, class R>
std::vector<R> run2(Pack& pack, uint32_t op, uint32_t type, uint32_t result, std::vector<T> a, std::vector<T> b) {
  const int64_t n = int64_t(a.size());
  Prog p = binary(op, type, result);
  Op o(TN_OPID_POINTWISE);
  o.in(type, {n}).in(type, {n}).out(result, {n}).program(TN_KEY_PROGRAM, p);
  std::vector<R> y(a.size());
  EXPECT_EQ(pack.run(kDense, o, {a.data(), b.data(), y.data()}), TN_OK);
  return y;
}

struct Function {
  const char* name;
  uint32_t op;
  double bound32, bound64;
  long double (*exact)(long double);
};
long double sign(long double x) { return std::isnan(x) || x == 0 ? x : x > 0 ? 1.0L : -1.0L; }
const Function kFunctions[] = {
    {"neg", TN_OP_NEG, 0, 0, [](long double x) { return -x; }},
    {"abs", TN_OP_ABS, 0, 0, [](long double x) { return std::fabs(x); }},
    {"sign", TN_OP_SIGN, 0, 0, sign},
    {"floor", TN_OP_FLOOR, 0, 0, [](long double x) { return std::floor(x); }},
    {"ceil", TN_OP_CEIL, 0, 0, [](long double x) { return std::ceil(x); }},
    {"trunc", TN_OP_TRUNC, 0, 0, [](long double x) { return std::trunc(x); }},
    {"rint", TN_OP_RINT, 0, 0, [](long double x) { return std::nearbyint(x); }},
    {"sqrt", TN_OP_SQRT, 1, 0.5, [](long double x) { return std::sqrt(x); }},
    {"rsqrt", TN_OP_RSQRT, 2, 2, [](long double x) { return x == 0 ? 1.0L / x : 1.0L / std::sqrt(x); }},
    {"exp", TN_OP_EXP, 3, 1, [](long double x) { return std::exp(x); }},
    {"expm1", TN_OP_EXPM1, 3, 2, [](long double x) { return std::expm1(x); }},
    {"log", TN_OP_LOG, 3, 1, [](long double x) { return std::log(x); }},
    {"log1p", TN_OP_LOG1P, 3, 2, [](long double x) { return std::log1p(x); }},
    {"sin", TN_OP_SIN, 4, 2, [](long double x) { return std::sin(x); }},
    {"cos", TN_OP_COS, 4, 2, [](long double x) { return std::cos(x); }},
    {"atan", TN_OP_ATAN, 4, 2, [](long double x) { return std::atan(x); }},
    {"tanh", TN_OP_TANH, 5, 2, [](long double x) { return std::tanh(x); }},
    {"erf", TN_OP_ERF, 8, 4, [](long double x) { return std::erf(x); }},
};

// Every 9973th bit pattern of f32, all special values, and values near 1 and 0.
std::vector<float> f32_sample() {
  std::vector<float> x;
  for (uint64_t u = 0; u < uint64_t{1} << 32; u += 9973) {
    const uint32_t bits = uint32_t(u);
    float f;
    std::memcpy(&f, &bits, 4);
    x.push_back(f);
  }
  for (float f : {0.0f, -0.0f, 1.0f, -1.0f, kInf, -kInf, kNan, 0.5f, -0.5f, 1.5f, 2.5f, -2.5f, 8388607.5f, 1e10f, 1e-45f, -1e-45f, 88.72f, 88.8f, -87.3f,
                  -103.9f, -104.1f, 1e-38f, 3.4e38f, -3.4e38f, 1e5f, 99999.9f, 1e6f, 3e38f})
    x.push_back(f);
  std::mt19937 rng(3);
  for (float scale : {1e-4f, 1e-2f, 0.3f, 1.0f, 4.0f, 20.0f, 100.0f, 1e4f}) {
    std::normal_distribution<float> normal(0, scale);
    for (int i = 0; i < 30000; ++i) x.push_back(normal(rng)), x.push_back(1 + normal(rng) * 1e-3f);
  }
  return x;
}

void expect_within_bound(Pack& pack, const Function& f, const std::vector<float>& x, const std::vector<long double>& exact) {
  const std::vector<float> y = run1(pack, f.op, TN_F32, x);
  double worst = 0;
  float at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::fabs(exact[i]) < 1.1754944e-38L && y[i] == 0) continue;  // a subnormal result may be flushed
    const double e = ulp_error(y[i], exact[i]);
    if (!(e <= worst)) worst = e, at = x[i];
    if (exact[i] == 0 && !std::isnan(x[i])) { EXPECT_EQ(std::signbit(y[i]), std::signbit(exact[i])) << f.name << " of " << x[i] << " by " << pack.isa; }
  }
  EXPECT_LE(worst, std::max(f.bound32, 0.50001 * (f.bound32 > 0))) << f.name << " at " << at << " by " << pack.isa;
  testing::Test::RecordProperty(std::string(f.name) + "_ulp_" + pack.isa, std::to_string(worst));
  if (std::getenv("TENON_TEST_VERBOSE")) std::printf("%-6s %-8s %.2f ulp at %g\n", f.name, pack.isa.c_str(), worst, double(at));
}

// The exact values cost more than the kernels: once for all instruction sets.
TEST(PointwiseOfEveryInstructionSet, f32_functions_stay_within_their_error_bounds) {
  const std::vector<float> x = f32_sample();
  Pack baseline("baseline"), avx2("avx2"), avx512("avx512");
  std::vector<long double> exact(x.size());
  for (const Function& f : kFunctions) {
    for (size_t i = 0; i < x.size(); ++i) exact[i] = f.exact(x[i]);
    for (Pack* pack : {&baseline, &avx2, &avx512}) expect_within_bound(*pack, f, x, exact);
  }
}

TEST_P(Pointwise, f64_functions_stay_within_their_error_bounds) {
  std::vector<double> x = {0.0, -0.0, 1, -1, kInf, -kInf, kNan, 0.5, -0.5, 2.5, 1e300, -1e300, 5e-324, 709.9, -745.2};
  std::mt19937_64 rng(5);
  for (double scale : {1e-3, 1.0, 30.0, 1e4}) {
    std::normal_distribution<double> normal(0, scale);
    for (int i = 0; i < 3000; ++i) x.push_back(normal(rng));
  }
  for (const Function& f : kFunctions) {
    const std::vector<double> y = run1(pack, f.op, TN_F64, x);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_LE(ulp_error(y[i], f.exact(x[i])), f.bound64 + 0.01) << f.name << " of " << x[i];
  }
}

TEST_P(Pointwise, two_operand_f32_opcodes_match_the_table) {
  std::vector<float> values = {0.0f, -0.0f, 1.0f, -1.0f, 2.0f, 0.5f, -3.0f, 7.25f, kInf, -kInf, kNan, 1e-40f, 3e38f, -3e38f, 1e-5f, 33.0f};
  std::vector<float> a, b;
  for (float x : values)
    for (float y : values) a.push_back(x), b.push_back(y);
  struct Case { uint32_t op; double bound; long double (*exact)(long double, long double); };
  const auto lower = [](long double x, long double y) -> long double {
    if (std::isnan(x) || std::isnan(y)) return NAN;
    return x == y ? (std::signbit(x) ? x : y) : std::min(x, y);
  };
  const auto higher = [](long double x, long double y) -> long double {
    if (std::isnan(x) || std::isnan(y)) return NAN;
    return x == y ? (std::signbit(x) ? y : x) : std::max(x, y);
  };
  const Case cases[] = {{TN_OP_ADD, 0.5, [](long double x, long double y) { return x + y; }},
                        {TN_OP_SUB, 0.5, [](long double x, long double y) { return x - y; }},
                        {TN_OP_MUL, 0.5, [](long double x, long double y) { return x * y; }},
                        {TN_OP_DIV, 2.5, [](long double x, long double y) { return x / y; }},
                        {TN_OP_REM, 0, [](long double x, long double y) { return std::fmod(x, y); }},
                        {TN_OP_POW, 16, [](long double x, long double y) { return std::pow(x, y); }},
                        {TN_OP_ATAN2, 6, [](long double x, long double y) { return std::atan2(x, y); }},
                        {TN_OP_MIN, 0, lower}, {TN_OP_MAX, 0, higher}};
  for (const Case& c : cases) {
    const auto y = run2<float, float>(pack, c.op, TN_F32, TN_F32, a, b);
    for (size_t i = 0; i < a.size(); ++i) {
      const long double exact = c.exact(a[i], b[i]);
      ASSERT_LE(ulp_error(y[i], exact), c.bound + 0.0001) << "op " << c.op << " of " << a[i] << ", " << b[i] << " gave " << y[i];
      if (exact == 0) { ASSERT_EQ(std::signbit(y[i]), std::signbit(exact)) << "op " << c.op << " of " << a[i] << ", " << b[i]; }
    }
  }
  for (uint32_t op : {TN_OP_LT, TN_OP_LE, TN_OP_EQ, TN_OP_NE}) {
    const auto y = run2<float, uint8_t>(pack, op, TN_F32, TN_BOOL, a, b);
    for (size_t i = 0; i < a.size(); ++i) {
      const bool want = op == TN_OP_LT ? a[i] < b[i] : op == TN_OP_LE ? a[i] <= b[i] : op == TN_OP_EQ ? a[i] == b[i] : a[i] != b[i];
      ASSERT_EQ(y[i], want) << op;
    }
  }
}

template <class T>
void check_integers(Pack& pack, uint32_t type) {
  constexpr T lo = std::numeric_limits<T>::min(), hi = std::numeric_limits<T>::max();
  const std::vector<T> values = {0, 1, T(-1), 2, 3, 7, T(-8), lo, hi, T(lo + 1), 31, 8, 64, T(-3)};
  std::vector<T> a, b;
  for (T x : values)
    for (T y : values) a.push_back(x), b.push_back(y);
  __extension__ using I = __int128;
  __extension__ using U = unsigned __int128;  // a product of two u64 leaves I
  const auto wrap = [](I v) { return T(v); };
  for (uint32_t op : {TN_OP_ADD, TN_OP_SUB, TN_OP_MUL, TN_OP_DIV, TN_OP_REM, TN_OP_MIN, TN_OP_MAX, TN_OP_AND, TN_OP_SHL, TN_OP_SHR, TN_OP_POW}) {
    const auto y = run2<T, T>(pack, op, type, type, a, b);
    for (size_t i = 0; i < a.size(); ++i) {
      const I p = a[i], q = b[i];
      const int bits = 8 * sizeof(T);
      I want = 0;
      switch (op) {
        case TN_OP_ADD: want = p + q; break;
        case TN_OP_SUB: want = p - q; break;
        case TN_OP_MUL: want = I(U(p) * U(q)); break;
        case TN_OP_DIV: want = q == 0 ? 0 : p / q; break;
        case TN_OP_REM: want = q == 0 ? 0 : p % q; break;
        case TN_OP_MIN: want = p < q ? p : q; break;
        case TN_OP_MAX: want = p > q ? p : q; break;
        case TN_OP_AND: want = p & q; break;
        case TN_OP_SHL: want = q < 0 || q >= bits ? 0 : I(T(std::make_unsigned_t<T>(p) << int(q))); break;
        case TN_OP_SHR: want = q < 0 || q >= bits ? (p < 0 ? -1 : 0) : p >> int(q); break;
        default:
          if (q < 0) want = p == 1 ? 1 : p == -1 ? (q & 1 ? -1 : 1) : 0;
          else {
            uint64_t r = 1, base = uint64_t(p);
            for (uint64_t e = uint64_t(q); e; e >>= 1, base *= base) r *= e & 1 ? base : 1;
            want = I(T(r));
          }
      }
      ASSERT_EQ(y[i], wrap(want)) << "op " << op << " of " << int64_t(a[i]) << ", " << int64_t(b[i]);
    }
  }
}
TEST_P(Pointwise, integers_wrap_and_divide_by_the_rules) {
  check_integers<int8_t>(pack, TN_I8);
  check_integers<uint8_t>(pack, TN_U8);
  check_integers<int16_t>(pack, TN_I16);
  check_integers<int32_t>(pack, TN_I32);
  check_integers<uint32_t>(pack, TN_U32);
  check_integers<int64_t>(pack, TN_I64);
  check_integers<uint64_t>(pack, TN_U64);
}

template <class To, class From>
std::vector<To> cast(Pack& pack, uint32_t from, uint32_t to, std::vector<From> x) {
  Prog p;
  p.out(p.add(TN_OP_CAST, to, p.in(0, from)));
  Op o(TN_OPID_POINTWISE);
  const int64_t n = int64_t(x.size());
  o.in(from, {n}).out(to, {n}).program(TN_KEY_PROGRAM, p);
  std::vector<To> y(x.size());
  EXPECT_EQ(pack.run(kDense, o, {x.data(), y.data()}), TN_OK);
  return y;
}
TEST_P(Pointwise, casts_saturate_and_turn_nan_into_zero) {
  const std::vector<float> x = {kNan, kInf, -kInf, 3e9f, -3e9f, 1.9f, -1.9f, -0.5f, 255.5f, 256.0f, -128.7f, 2147483520.0f, 1e20f, -1e20f, 65504.0f, 127.99f};
  EXPECT_EQ((cast<int32_t>(pack, TN_F32, TN_I32, x)),
            (std::vector<int32_t>{0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 1, -1, 0, 255, 256, -128, 2147483520, INT32_MAX, INT32_MIN, 65504, 127}));
  EXPECT_EQ((cast<uint8_t>(pack, TN_F32, TN_U8, x)), (std::vector<uint8_t>{0, 255, 0, 255, 0, 1, 0, 0, 255, 255, 0, 255, 255, 0, 255, 127}));
  EXPECT_EQ((cast<int8_t>(pack, TN_F32, TN_I8, x)), (std::vector<int8_t>{0, 127, -128, 127, -128, 1, -1, 0, 127, 127, -128, 127, 127, -128, 127, 127}));
  const auto wide = cast<int64_t>(pack, TN_F32, TN_I64, x);
  EXPECT_EQ(wide[1], INT64_MAX);
  EXPECT_EQ(wide[2], INT64_MIN);
  EXPECT_EQ(wide[3], 3000000000);
  EXPECT_EQ((cast<uint8_t>(pack, TN_F32, TN_BOOL, std::vector<float>{kNan, 0.0f, -0.0f, 1e-45f, 3.0f})), (std::vector<uint8_t>{1, 0, 0, 1, 1}));
}
TEST_P(Pointwise, every_half_survives_the_way_through_f32_and_f32_rounds_to_the_nearest_half) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = uint16_t(i);
  const auto wide = cast<float>(pack, TN_F16, TN_F32, all);
  const auto back = cast<uint16_t>(pack, TN_F32, TN_F16, wide);
  for (size_t i = 0; i < all.size(); ++i) {
    const int e = int(i >> 10 & 31), m = int(i & 1023);
    const float sign = i & 0x8000 ? -1.0f : 1.0f;
    if (e == 31 && m) { ASSERT_TRUE(std::isnan(wide[i])); continue; }
    ASSERT_EQ(wide[i], sign * (e == 31 ? kInf : e ? std::ldexp(1.0f + float(m) / 1024, e - 15) : std::ldexp(float(m), -24))) << i;
    ASSERT_EQ(back[i], all[i]) << i;
  }
  std::vector<float> between;  // halves of the gap: ties go to even
  for (uint16_t h = 0; h < 0x7BFF; ++h) between.push_back((wide[h] + wide[h + 1]) / 2);
  const auto ties = cast<uint16_t>(pack, TN_F32, TN_F16, between);
  for (uint16_t h = 0; h < 0x7BFF; ++h) ASSERT_EQ(ties[h], h % 2 ? h + 1 : h) << h;
  const auto direct = cast<uint16_t>(pack, TN_F64, TN_F16, std::vector<double>{1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11, 1e10, 65519.999, 65520.0});
  EXPECT_EQ(direct, (std::vector<uint16_t>{0x3C01, 0x3C00, 0x7C00, 0x7BFF, 0x7C00}));
}
TEST_P(Pointwise, bfloat_rounds_to_nearest_even_and_keeps_nan) {
  const auto y = cast<uint16_t>(pack, TN_F32, TN_BF16, std::vector<float>{1.0f, 1.00390625f, 1.01171875f, kNan, kInf, -0.0f, 3.4e38f});
  EXPECT_EQ(y[0], 0x3F80);
  EXPECT_EQ(y[1], 0x3F80);
  EXPECT_EQ(y[2], 0x3F82);
  EXPECT_GT(y[3] & 0x7FFF, 0x7F80);
  EXPECT_EQ(y[4], 0x7F80);
  EXPECT_EQ(y[5], 0x8000);
  EXPECT_EQ(y[6], 0x7F80);
}

// gelu-like chain with a pushed constant, checked op by op in double: (x * s + b) * tanh(x - b)
Prog chain() {
  Prog p;
  const uint16_t x = p.in(0, TN_F32), b = p.in(1, TN_F32), s = p.slot(0, TN_F32);
  const uint16_t m = p.add(TN_OP_MUL, TN_F32, x, s), a = p.add(TN_OP_ADD, TN_F32, m, b), d = p.add(TN_OP_SUB, TN_F32, x, b);
  return p.out(p.add(TN_OP_MUL, TN_F32, a, p.add(TN_OP_TANH, TN_F32, d)));
}
float chain_value(float x, float b, float s) { return (x * s + b) * std::tanh(x - b); }

TEST_P(Pointwise, a_chain_is_right_at_every_length) {
  for (int64_t n = 0; n <= 70; ++n) {
    std::vector<float> x(size_t(n) + 1), b(x.size()), y(x.size(), -5);
    for (int64_t i = 0; i < n; ++i) x[size_t(i)] = 0.1f * float(i) - 2, b[size_t(i)] = 0.3f + 0.01f * float(i);
    Prog p = chain();
    Op o(TN_OPID_POINTWISE);
    o.in(TN_F32, {n}).in(TN_F32, {n}).out(TN_F32, {n}).program(TN_KEY_PROGRAM, p).scalar(0.5f);
    ASSERT_EQ(pack.run(kDense, o, {x.data(), b.data(), y.data()}), TN_OK);
    for (size_t i = 0; i < size_t(n); ++i) ASSERT_NEAR(y[i], chain_value(x[i], b[i], 0.5f), 1e-5f) << n;
    ASSERT_EQ(y[size_t(n)], -5.0f) << "wrote past the end at n = " << n;
  }
}
TEST_P(Pointwise, broadcast_rows_columns_and_scalars_agree_with_loops) {
  for (int64_t rows : {1, 3, 5, 70})
    for (int64_t cols : {1, 3, 16, 255, 300, 1030}) {
      std::vector<float> x(size_t(rows * cols)), row(size_t(cols), 0), col(size_t(rows), 0), one = {0.7f}, y(x.size());
      for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 97) * 0.02f - 1;
      for (size_t i = 0; i < row.size(); ++i) row[i] = 0.01f * float(i % 50);
      for (size_t i = 0; i < col.size(); ++i) col[i] = 0.1f * float(i);
      struct Form { std::vector<float>* b; std::vector<int64_t> stride; };
      for (const Form& f : {Form{&row, {0, 1}}, Form{&col, {1, 0}}, Form{&one, {0, 0}}}) {
        Prog p = chain();
        Op o(TN_OPID_POINTWISE);
        o.in(TN_F32, {rows, cols}).in(Op::with_strides(TN_F32, {rows, cols}, f.stride)).out(TN_F32, {rows, cols}).program(TN_KEY_PROGRAM, p).scalar(2.0f);
        ASSERT_EQ(pack.run(kDense, o, {x.data(), f.b->data(), y.data()}), TN_OK);
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < cols; ++j)
            ASSERT_NEAR(y[size_t(i * cols + j)], chain_value(x[size_t(i * cols + j)], (*f.b)[size_t(i * f.stride[0] + j * f.stride[1])], 2), 1e-5f);
      }
    }
}
TEST_P(Pointwise, strided_and_reversed_operands_agree_with_loops) {
  const int64_t d[3] = {5, 7, 33};
  std::vector<float> x(size_t(5 * 7 * 33 * 2)), y(size_t(5 * 7 * 33));
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 101) * 0.05f;
  const std::vector<std::vector<int64_t>> forms = {{33 * 14, 66, 2}, {1, 5, 35}, {231, 33, -1}, {0, 33, 1}, {33, 0, 2}};
  for (const auto& s : forms) {
    const float* base = s[2] < 0 ? x.data() + 40 : x.data();
    Prog p = unary(TN_OP_ABS, TN_F32);
    Op o(TN_OPID_POINTWISE);
    o.in(Op::with_strides(TN_F32, {d[0], d[1], d[2]}, s)).out(TN_F32, {d[0], d[1], d[2]}).program(TN_KEY_PROGRAM, p);
    ASSERT_EQ(pack.run(kStrided, o, {const_cast<float*>(base), y.data()}), TN_OK);
    for (int64_t i = 0; i < d[0]; ++i)
      for (int64_t j = 0; j < d[1]; ++j)
        for (int64_t k = 0; k < d[2]; ++k) ASSERT_EQ(y[size_t((i * 7 + j) * 33 + k)], base[i * s[0] + j * s[1] + k * s[2]]);
  }
}
TEST_P(Pointwise, channels_last_output_is_written_in_its_own_strides) {
  std::vector<float> x(2 * 3 * 4 * 5), y(x.size(), 0);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i);
  Prog p = unary(TN_OP_NEG, TN_F32);
  Op o(TN_OPID_POINTWISE);
  const std::vector<int64_t> last = {60, 1, 15, 3};
  o.in(TN_F32, {2, 3, 4, 5}).out(Op::with_strides(TN_F32, {2, 3, 4, 5}, last)).program(TN_KEY_PROGRAM, p);
  ASSERT_EQ(pack.run(kStrided, o, {x.data(), y.data()}), TN_OK);
  for (int n = 0; n < 2; ++n)
    for (int c = 0; c < 3; ++c)
      for (int h = 0; h < 4; ++h)
        for (int w = 0; w < 5; ++w) ASSERT_EQ(y[size_t(n * 60 + c + h * 15 + w * 3)], -x[size_t(((n * 3 + c) * 4 + h) * 5 + w)]);
}
TEST_P(Pointwise, an_output_may_be_the_view_of_an_input_that_is_read_again_later) {
  // two outputs: out0 = x + y, out1 = x - y, out0 in place of x
  Prog p;
  const uint16_t x = p.in(0, TN_F32), y = p.in(1, TN_F32), s = p.add(TN_OP_ADD, TN_F32, x, y), d = p.add(TN_OP_SUB, TN_F32, x, y);
  p.out(s).out(d);
  for (int64_t n : {16, 37, 5000}) {
    const auto count = static_cast<size_t>(n);
    std::vector<float> a(count), b(count), diff(count);
    for (size_t i = 0; i < a.size(); ++i) a[i] = float(i), b[i] = 100;
    Op o(TN_OPID_POINTWISE);
    o.in(TN_F32, {n}).in(TN_F32, {n}).out(TN_F32, {n}).out(TN_F32, {n}).program(TN_KEY_PROGRAM, p);
    ASSERT_EQ(pack.run(kDense, o, {a.data(), b.data(), a.data(), diff.data()}), TN_OK);
    for (size_t i = 0; i < a.size(); ++i) ASSERT_TRUE(a[i] == float(i) + 100 && diff[i] == float(i) - 100) << i;
  }
}
TEST_P(Pointwise, one_plan_serves_all_sizes_of_a_symbolic_line_and_plane) {
  Prog p = binary(TN_OP_ADD, TN_F32, TN_F32);
  Op line(TN_OPID_POINTWISE);
  const tn_type t = Op::with_strides(TN_F32, {TN_SYM(0)}, {1});
  line.in(t).in(Op::with_strides(TN_F32, {TN_SYM(0)}, {0})).out(t).program(TN_KEY_PROGRAM, p);
  const tn_kernel_plan* plan = pack.prepare(kDense, line);
  for (int64_t n : {2, 3, 16, 17, 600, 5000}) {
    std::vector<float> a(size_t(n), 2), b = {3}, y(size_t(n), 0);
    ASSERT_EQ(Pack::launch(plan, {a.data(), b.data(), y.data()}, line, nullptr, &n), TN_OK);
    for (float v : y) ASSERT_EQ(v, 5.0f);
  }
  pack.retire(kDense, plan);
  Op plane(TN_OPID_POINTWISE);
  const tn_type u = Op::with_strides(TN_F32, {TN_SYM(0), TN_SYM(1)}, {TN_SYM(1), 1});
  plane.in(u).in(Op::with_strides(TN_F32, {TN_SYM(0), TN_SYM(1)}, {1, 0})).out(u).program(TN_KEY_PROGRAM, p);
  plan = pack.prepare(kDense, plane);
  for (int64_t rows : {2, 9})
    for (int64_t cols : {2, 700}) {
      std::vector<float> a(static_cast<size_t>(rows * cols), 1), b(static_cast<size_t>(rows)), y(a.size());
      for (size_t i = 0; i < b.size(); ++i) b[i] = float(i);
      const int64_t dyn[] = {rows, cols};
      ASSERT_EQ(Pack::launch(plan, {a.data(), b.data(), y.data()}, plane, nullptr, dyn), TN_OK);
      for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 1 + float(i / size_t(cols)));
    }
  pack.retire(kDense, plan);
}
TEST_P(Pointwise, select_index_and_philox_follow_the_table) {
  Prog p;
  const uint16_t i = p.add(TN_OP_INDEX, TN_U64, 1), key = p.slot(0, TN_U64), w = p.add(TN_OP_PHILOX, TN_U32, i, key, 2);
  p.out(w);
  Op o(TN_OPID_POINTWISE);
  o.out(TN_U32, {2, 3}).program(TN_KEY_PROGRAM, p).ints(TN_KEY_DIMS, {2, 3}).scalar(uint64_t{0});
  std::vector<uint32_t> y(6);
  ASSERT_EQ(pack.run(kDense, o, {y.data()}), TN_OK);
  EXPECT_EQ(y[0], 0xbc57ac4cu);  // word 2 of the published vector for counter 0, key 0
  EXPECT_EQ(y[0], y[3]);
  EXPECT_NE(y[0], y[1]);
  Prog q;  // x > 0 ? x : 0.1 x
  const uint16_t x = q.in(0, TN_F32), zero = q.slot(0, TN_F32), slope = q.slot(1, TN_F32);
  const uint16_t c = q.add(TN_OP_LT, TN_BOOL, zero, x), m = q.add(TN_OP_MUL, TN_F32, x, slope);
  q.out(q.add(TN_OP_SELECT, TN_F32, c, x, m));
  Op leaky(TN_OPID_POINTWISE);
  leaky.in(TN_F32, {5}).out(TN_F32, {5}).program(TN_KEY_PROGRAM, q).scalar(0.0f).scalar(0.5f);
  std::vector<float> in = {-2, 4, 0, kNan, -kInf}, out(5);
  ASSERT_EQ(pack.run(kDense, leaky, {in.data(), out.data()}), TN_OK);
  EXPECT_EQ(out[0], -1.0f);
  EXPECT_EQ(out[1], 4.0f);
  EXPECT_EQ(out[2], 0.0f);
  EXPECT_TRUE(std::isnan(out[3]));
  EXPECT_EQ(out[4], -kInf);
}
TEST(PointwiseThreads, a_large_result_split_over_threads_and_streamed_is_complete) {
  Pack pack(nullptr, 3);
  const int64_t n = (4 << 20) + 37;
  std::vector<float> x(size_t(n) + 16), y(size_t(n) + 16, 0);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 1000);
  float* to = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(y.data()) + 63) / 64 * 64);
  Prog p = unary(TN_OP_NEG, TN_F32);
  Op o(TN_OPID_POINTWISE);
  o.in(TN_F32, {n}).out(TN_F32, {n}).program(TN_KEY_PROGRAM, p);
  ASSERT_EQ(pack.run(kDense, o, {x.data(), to}), TN_OK);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(to[i], -x[size_t(i)]);
}

}  // namespace
}  // namespace tenon::test
