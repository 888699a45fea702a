// Published values: NumPy's ULP validation sets and the known answers of Random123.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "ops/reference/eval.h"
#include "tests/reference/helpers.h"

namespace tenon::reference::testing {
namespace {

// A member of an archive in the test data, or "" where there is none.
std::string member(const char* archive, const char* name) {
  const char* root = std::getenv("TENON_TEST_DATA");
  const std::string path = std::string(root != nullptr ? root : TENON_TEST_DEFAULT_DATA) + "/numeric/" + archive;
  std::FILE* f = ::popen(("tar --zstd -xOf '" + path + "' " + name + " 2>/dev/null").c_str(), "r");
  std::string text;
  if (f == nullptr) return text;
  char chunk[4096];
  for (size_t n; (n = std::fread(chunk, 1, sizeof chunk, f)) > 0;) text.append(chunk, n);
  ::pclose(f);
  return text;
}

int64_t ordered(float x) {
  const int32_t i = std::bit_cast<int32_t>(x);
  return i < 0 ? int64_t{INT32_MIN} - i : i;
}
int64_t ordered(double x) {
  const int64_t i = std::bit_cast<int64_t>(x);
  return i < 0 ? INT64_MIN - i : i;
}

template <class T, class Bits> int check_rows(const std::string& text, const char* dtype, uint8_t op, int64_t bound) {
  std::istringstream lines(text);
  int checked = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(dtype, 0) != 0) continue;
    const char* p = line.c_str() + std::strlen(dtype) + 1;
    char* next = nullptr;
    const T x = std::bit_cast<T>(static_cast<Bits>(std::strtoull(p, &next, 16)));
    const T want = std::bit_cast<T>(static_cast<Bits>(std::strtoull(next + 1, nullptr, 16)));
    T got;
    eval_fn(op, dtype_of<T>(), dtype_of<T>())(1, &got, &x, nullptr, nullptr);
    ++checked;
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << line;
    } else {
      EXPECT_LE(std::llabs(ordered(got) - ordered(want)), bound) << line << " gave " << got;
    }
  }
  return checked;
}

TEST(Published, numpy_ulp_validation_sets) {
  const struct { const char* name; uint8_t op; int64_t f64_bound; } sets[] = {
      {"exp", TN_OP_EXP, 1}, {"expm1", TN_OP_EXPM1, 2}, {"log", TN_OP_LOG, 1}, {"log1p", TN_OP_LOG1P, 2}, {"sin", TN_OP_SIN, 2},
      {"cos", TN_OP_COS, 2}, {"arctan", TN_OP_ATAN, 2}, {"tanh", TN_OP_TANH, 2}};
  for (const auto& s : sets) {
    const std::string text = member("numpy-umath.tar.zst", ("numpy-umath/umath-validation-set-" + std::string(s.name) + ".csv").c_str());
    if (text.empty()) GTEST_SKIP() << "numeric/numpy-umath.tar.zst is not under TENON_TEST_DATA or " << TENON_TEST_DEFAULT_DATA;
    const int rows = check_rows<float, uint32_t>(text, "np.float32", s.op, 1) + check_rows<double, uint64_t>(text, "np.float64", s.op, s.f64_bound);
    EXPECT_GT(rows, 10) << s.name;
  }
}

TEST(Published, philox4x32_10_known_answers) {
  const std::string text = member("random123.tar.zst", "random123/kat_vectors");
  if (text.empty()) GTEST_SKIP() << "numeric/random123.tar.zst is not under TENON_TEST_DATA or " << TENON_TEST_DEFAULT_DATA;
  std::istringstream lines(text);
  int checked = 0, general = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("philox4x32 10 ", 0) != 0) continue;
    uint32_t c[4], k[2], want[4];
    ASSERT_EQ(std::sscanf(line.c_str() + 14, "%x %x %x %x %x %x %x %x %x %x", &c[0], &c[1], &c[2], &c[3], &k[0], &k[1], &want[0], &want[1], &want[2], &want[3]), 10);
    uint32_t got[4];
    philox_block(c, k, got);
    for (int w = 0; w < 4; ++w) EXPECT_EQ(got[w], want[w]) << line;
    ++general;
    if (c[2] != 0 || c[3] != 0) continue;  // the opcode's counter has 64 bits
    for (uint32_t w = 0; w < 4; ++w) EXPECT_EQ(philox(uint64_t{c[1]} << 32 | c[0], uint64_t{k[1]} << 32 | k[0], w), want[w]) << line;
    ++checked;
  }
  EXPECT_GE(general, 3); EXPECT_GE(checked, 1);
}

}  // namespace
}  // namespace tenon::reference::testing
