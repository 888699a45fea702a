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

}  // namespace
}  // namespace tenon::test
