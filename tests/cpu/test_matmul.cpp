// The matmul rows against loops in double, or exact integers.
#include "tests/cpu/harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tenon::test {
namespace {

class Matmul : public testing::TestWithParam<const char*> {
 protected:
  Pack pack{GetParam(), 2};
};
INSTANTIATE_TEST_SUITE_P(InstructionSets, Matmul, testing::Values("baseline", "avx2", "avx512"), [](auto& i) { return std::string(i.param); });

std::vector<float> noise(int64_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = std::normal_distribution<float>()(rng);
  return x;
}
// All four orders of the last axes of a and b.
void check_f32(Pack& pack, const char* row, int64_t m, int64_t n, int64_t k) {
  const auto a = noise(m * k + 1, 1), b = noise(k * n + 1, 2);
  for (int order = 0; order < 4; ++order) {
    const int64_t ai = order & 1 ? 1 : k, ak = order & 1 ? m : 1, bk = order & 2 ? 1 : n, bn = order & 2 ? k : 1;
    Op op(TN_OPID_MATMUL);
    op.in(Op::with_strides(TN_F32, {m, k}, {ai, ak})).in(Op::with_strides(TN_F32, {k, n}, {bk, bn})).out(TN_F32, {m, n});
    std::vector<float> c(static_cast<size_t>(m * n) + 1, 99);
    ASSERT_EQ(pack.run(row, op, {const_cast<float*>(a.data()), const_cast<float*>(b.data()), c.data()}), TN_OK);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double want = 0, mass = 0;
        for (int64_t p = 0; p < k; ++p) {
          const double t = double(a[size_t(i * ai + p * ak)]) * b[size_t(p * bk + j * bn)];
          want += t, mass += std::fabs(t);
        }
        ASSERT_NEAR(c[size_t(i * n + j)], want, 1e-6 * (mass + 1e-30) * (4 + std::sqrt(double(k)))) << m << "x" << n << "x" << k << " order " << order << " at " << i << "," << j;
      }
    ASSERT_EQ(c[size_t(m * n)], 99.0f) << "wrote past the end";
  }
}
TEST_P(Matmul, small_products_are_right_in_all_axis_orders) {
  for (int64_t m : {1, 2, 5, 6, 7, 8, 9, 13, 32, 64})
    for (int64_t n : {1, 3, 8, 16, 17, 31, 32, 33, 64})
      for (int64_t k : {0, 1, 7, 8, 64}) check_f32(pack, "cpu.matmul.micro_f32", m, n, k);
}
TEST_P(Matmul, large_products_are_right_in_all_axis_orders) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {7, 65, 300}, {130, 70, 257}, {64, 600, 40}, {3, 1000, 256}, {129, 1, 511}, {0, 5, 3}, {5, 0, 3}, {5, 4, 0}})
    check_f32(pack, "cpu.matmul.f32", m, n, k);
}
TEST_P(Matmul, batches_broadcast_and_a_program_adds_bias_and_relu) {
  const int64_t m = 9, n = 20, k = 11;
  const auto a = noise(3 * m * k, 3), b = noise(2 * k * n, 4), bias = noise(n, 5);
  for (const char* row : {"cpu.matmul.micro_f32", "cpu.matmul.f32"}) {
    Prog post;
    const uint16_t s = post.add(TN_OP_ADD, TN_F32, post.in(0, TN_F32), post.in(1, TN_F32));
    post.out(post.add(TN_OP_MAX, TN_F32, s, post.slot(0, TN_F32)));
    Op op(TN_OPID_MATMUL);
    op.in(TN_F32, {3, 1, m, k}).in(TN_F32, {2, k, n}).in(TN_F32, {n}).out(TN_F32, {3, 2, m, n}).program(TN_KEY_POST, post).scalar(0.0f);
    std::vector<float> c(static_cast<size_t>(6 * m * n));
    ASSERT_EQ(pack.run(row, op, {const_cast<float*>(a.data()), const_cast<float*>(b.data()), const_cast<float*>(bias.data()), c.data()}), TN_OK);
    for (int64_t x = 0; x < 6; ++x)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double want = bias[size_t(j)];
          for (int64_t p = 0; p < k; ++p) want += double(a[size_t((x / 2 * m + i) * k + p)]) * b[size_t((x % 2 * k + p) * n + j)];
          ASSERT_NEAR(c[size_t((x * m + i) * n + j)], std::max(want, 0.0), 1e-4) << row;
        }
  }
}

uint16_t to_bf16(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  return uint16_t((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}
float from_bf16(uint16_t h) {
  const uint32_t u = uint32_t(h) << 16;
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}
const std::array<int64_t, 3> kAmxSizes[] = {{1, 1, 1}, {32, 32, 32}, {33, 31, 65}, {64, 100, 200}, {7, 600, 130}, {700, 40, 70}, {96, 64, 1500}, {600, 520, 64}, {5, 6, 0},
                                             // whole depths that stay in L2, in one block of rows and in several
                                             {520, 66, 1025}, {290, 40, 2048}, {600, 35, 2000}, {40, 33, 4096},
                                             // more side work than steps; groups of columns whose storing ends early, late and not at all; results past the caches
                                             {1, 200, 64}, {32, 64, 1000}, {288, 129, 1100}, {31, 4000, 48}, {520, 1056, 40}, {70, 8192, 96}};
TEST(AmxMatmul, bf16_products_of_any_size_match_double_loops) {
  for (uint32_t threads : {1u, 2u}) {
    Pack pack(nullptr, threads);
    for (auto [m, n, k] : kAmxSizes) {
      std::vector<uint16_t> a, b;
      for (float v : noise(m * k + 1, 1)) a.push_back(to_bf16(v));
      for (float v : noise(k * n + 1, 2)) b.push_back(to_bf16(v));
      for (uint32_t out : {TN_F32, TN_BF16}) {
        Op op(TN_OPID_MATMUL);
        op.in(TN_BF16, {m, k}).in(TN_BF16, {k, n}).out(out, {m, n});
        if (!pack.refusal("cpu.matmul.amx_bf16", op).empty()) GTEST_SKIP() << "no AMX here";
        std::vector<float> c(static_cast<size_t>(m * n) + 1, 99);
        auto* half = reinterpret_cast<uint16_t*>(c.data());
        ASSERT_EQ(pack.run("cpu.matmul.amx_bf16", op, {a.data(), b.data(), c.data()}), TN_OK);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            double want = 0, mass = 0;
            for (int64_t p = 0; p < k; ++p) {
              const double t = double(from_bf16(a[size_t(i * k + p)])) * double(from_bf16(b[size_t(p * n + j)]));
              want += t, mass += std::fabs(t);
            }
            const double got = double(out == TN_F32 ? c[size_t(i * n + j)] : from_bf16(half[i * n + j]));
            ASSERT_NEAR(got, want, 1e-6 * mass * 4 + (out == TN_F32 ? 0 : std::fabs(want) / 256)) << m << "x" << n << "x" << k;
          }
        if (out == TN_F32) { ASSERT_EQ(c[size_t(m * n)], 99.0f); }
      }
    }
  }
}
TEST(AmxMatmul, u8_times_i8_is_exact) {
  for (uint32_t threads : {1u, 2u}) {
    Pack pack(nullptr, threads);
    for (auto [m, n, k] : kAmxSizes) {
      std::mt19937 rng(3);
      std::vector<uint8_t> a(static_cast<size_t>(m * k) + 1);
      std::vector<int8_t> b(static_cast<size_t>(k * n) + 1);
      for (auto& v : a) v = uint8_t(rng());
      for (auto& v : b) v = int8_t(rng());
      Op op(TN_OPID_MATMUL);
      op.in(TN_U8, {m, k}).in(TN_I8, {k, n}).out(TN_I32, {m, n});
      if (!pack.refusal("cpu.matmul.amx_u8s8", op).empty()) GTEST_SKIP() << "no AMX here";
      std::vector<int32_t> c(static_cast<size_t>(m * n) + 1, 99);
      ASSERT_EQ(pack.run("cpu.matmul.amx_u8s8", op, {a.data(), b.data(), c.data()}), TN_OK);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          int32_t want = 0;
          for (int64_t p = 0; p < k; ++p) want += a[size_t(i * k + p)] * b[size_t(p * n + j)];
          ASSERT_EQ(c[size_t(i * n + j)], want) << m << "x" << n << "x" << k;
        }
      ASSERT_EQ(c[size_t(m * n)], 99);
    }
  }
}

}  // namespace
}  // namespace tenon::test
