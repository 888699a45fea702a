// Long runs of f32 instructions in one program, against the same instructions one by one: equal to the last bit.
#include "tests/cpu/harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace tenon::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
class Chain : public testing::TestWithParam<const char*> {
 protected:
  Pack pack{GetParam(), 2};
};
INSTANTIATE_TEST_SUITE_P(InstructionSets, Chain, testing::Values("baseline", "avx2", "avx512"), [](auto& i) { return std::string(i.param); });

float apply(uint32_t op, float a, float b) { return op == TN_OP_ADD ? a + b : op == TN_OP_SUB ? a - b : a * b; }
bool same(float a, float b) { return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b)); }
std::vector<float> values(int64_t n, unsigned seed) {
  std::mt19937 r(seed);
  std::normal_distribution<float> d;
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = d(r);
  const float odd[] = {kNan, INFINITY, -INFINITY, 0.0f, -0.0f, 3e38f, -1e-38f};
  for (size_t i = 0; i < std::size(odd) && i * 3 < v.size(); ++i) v[(i * 3 + seed) % v.size()] = odd[i];
  return v;
}

TEST_P(Chain, random_programs_equal_their_instructions_one_by_one) {
  std::mt19937 r(5);
  for (int round = 0; round < 200; ++round) {
    const int64_t n = round < 71 ? round : 500 + 97 * (round % 9);
    const int count = 3 + int(r() % 20);
    Prog p;
    std::vector<std::vector<float>> value;
    const auto x = values(n, 1), y = values(n, 2);
    value.push_back(x), p.in(0, TN_F32), value.push_back(y), p.in(1, TN_F32);
    value.push_back(std::vector<float>(size_t(n), 0.75f)), p.slot(0, TN_F32);
    for (int k = 0; k < count; ++k) {
      const uint32_t op = std::vector<uint32_t>{TN_OP_ADD, TN_OP_SUB, TN_OP_MUL}[r() % 3];
      // Mostly the newest value with an older one, either way round, so that long runs come about.
      size_t a = r() % 4 ? value.size() - 1 : r() % value.size(), b = r() % value.size();
      if (r() % 2) std::swap(a, b);
      p.add(op, TN_F32, uint32_t(a), uint32_t(b));
      std::vector<float> v(static_cast<size_t>(n));
      for (size_t i = 0; i < v.size(); ++i) v[i] = apply(op, value[a][i], value[b][i]);
      value.push_back(v);
    }
    const size_t early = 3 + r() % size_t(count);  // a value in the middle leaves as well
    p.out(uint16_t(value.size() - 1)), p.out(uint16_t(early));
    Op op(TN_OPID_POINTWISE);
    op.in(TN_F32, {n}).in(TN_F32, {n}).out(TN_F32, {n}).out(TN_F32, {n}).program(TN_KEY_PROGRAM, p).scalar(0.75f);
    // Every third time the first output lies on an input.
    std::vector<float> a = x, b = y, o0(size_t(n) + 1, 9), o1(size_t(n) + 1, 9);
    float* first = round % 3 == 1 ? a.data() : round % 3 == 2 ? b.data() : o0.data();
    ASSERT_EQ(pack.run("cpu.pointwise.dense", op, {a.data(), b.data(), first, o1.data()}), TN_OK);
    for (size_t i = 0; i < size_t(n); ++i) {
      ASSERT_TRUE(same(first[i], value.back()[i])) << round << " element " << i << ": " << first[i] << " for " << value.back()[i];
      ASSERT_TRUE(same(o1[i], value[early][i])) << round << " element " << i;
    }
    ASSERT_EQ(o0.back(), 9.0f);
    ASSERT_EQ(o1.back(), 9.0f);
  }
}
TEST_P(Chain, one_value_through_more_links_than_a_chain_holds) {
  const int64_t n = 1000;
  const auto x = values(n, 1), y = values(n, 4);
  Prog p;
  const uint16_t a = p.in(0, TN_F32), b = p.in(1, TN_F32);
  uint16_t v = a;
  std::vector<float> want = x;
  for (int k = 0; k < 40; ++k) {
    const bool add = k % 3 == 0, first = k % 2;
    v = p.add(add ? TN_OP_ADD : TN_OP_SUB, TN_F32, first ? b : v, first ? v : b);
    for (size_t i = 0; i < want.size(); ++i) want[i] = apply(add ? TN_OP_ADD : TN_OP_SUB, first ? y[i] : want[i], first ? want[i] : y[i]);
  }
  p.out(v);
  Op op(TN_OPID_POINTWISE);
  op.in(TN_F32, {n}).in(TN_F32, {n}).out(TN_F32, {n}).program(TN_KEY_PROGRAM, p);
  std::vector<float> o(static_cast<size_t>(n));
  ASSERT_EQ(pack.run("cpu.pointwise.dense", op, {const_cast<float*>(x.data()), const_cast<float*>(y.data()), o.data()}), TN_OK);
  for (size_t i = 0; i < o.size(); ++i) ASSERT_TRUE(same(o[i], want[i])) << i;
}
// A comparison that feeds one selection runs with it: a NaN is unequal to everything, itself included.
TEST_P(Chain, selections_by_comparison_follow_ieee_for_nan) {
  const auto x = values(67, 1), y = values(67, 1 + 3);
  for (uint32_t compare : {TN_OP_LT, TN_OP_LE, TN_OP_EQ, TN_OP_NE}) {
    Prog p;
    const uint16_t a = p.in(0, TN_F32), b = p.in(1, TN_F32), one = p.slot(0, TN_F32), two = p.slot(1, TN_F32);
    p.out(p.add(TN_OP_SELECT, TN_F32, p.add(compare, TN_BOOL, a, b), one, two));
    Op op(TN_OPID_POINTWISE);
    op.in(TN_F32, {67}).in(TN_F32, {67}).out(TN_F32, {67}).program(TN_KEY_PROGRAM, p).scalar(1.0f).scalar(2.0f);
    std::vector<float> o(67);
    for (const auto* other : {&y, &x}) {
      ASSERT_EQ(pack.run("cpu.pointwise.dense", op, {const_cast<float*>(x.data()), const_cast<float*>(other->data()), o.data()}), TN_OK);
      for (size_t i = 0; i < o.size(); ++i) {
        const float u = x[i], v = (*other)[i];
        const bool yes = compare == TN_OP_LT ? u < v : compare == TN_OP_LE ? u <= v : compare == TN_OP_EQ ? u == v : u != v;
        ASSERT_EQ(o[i], yes ? 1.0f : 2.0f) << compare << ' ' << u << ' ' << v;
      }
    }
  }
}

// Words by the published rounds (Salmon et al. 2011), and its known answer for counter 0 and key 0; every length.
TEST_P(Chain, philox_words_match_the_rounds_written_out) {
  const auto rounds = [](uint64_t counter, uint64_t key, int word) {
    uint32_t c0 = uint32_t(counter), c1 = uint32_t(counter >> 32), c2 = 0, c3 = 0, k0 = uint32_t(key), k1 = uint32_t(key >> 32);
    for (int r = 0; r < 10; ++r) {
      const uint64_t a = 0xD2511F53ull * c0, b = 0xCD9E8D57ull * c2;
      const uint32_t n0 = uint32_t(b >> 32) ^ c1 ^ k0, n2 = uint32_t(a >> 32) ^ c3 ^ k1;
      c0 = n0, c1 = uint32_t(b), c2 = n2, c3 = uint32_t(a), k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    const uint32_t all[] = {c0, c1, c2, c3};
    return all[word];
  };
  EXPECT_EQ(rounds(0, 0, 0), 0x6627e8d5u);
  for (int word = 0; word < 4; ++word)
    for (int64_t n : {1, 2, 7, 16, 33, 70, 1000}) {
      std::vector<uint64_t> counter(static_cast<size_t>(n)), key(static_cast<size_t>(n));
      std::mt19937_64 r(3);
      for (size_t i = 0; i < counter.size(); ++i) counter[i] = i ? r() : 0, key[i] = i ? r() : 0;
      if (n > 1) counter[1] = key[1] = ~uint64_t{0};
      Prog p;
      const uint16_t c = p.in(0, TN_U64), k = p.in(1, TN_U64);
      p.out(p.add(TN_OP_PHILOX, TN_U32, c, k, uint32_t(word)));
      Op op(TN_OPID_POINTWISE);
      op.in(TN_U64, {n}).in(TN_U64, {n}).out(TN_U32, {n}).program(TN_KEY_PROGRAM, p);
      std::vector<uint32_t> o(size_t(n) + 1, 5);
      ASSERT_EQ(pack.run("cpu.pointwise.dense", op, {counter.data(), key.data(), o.data()}), TN_OK);
      ASSERT_EQ(o.back(), 5u);
      for (size_t i = 0; i < size_t(n); ++i) ASSERT_EQ(o[i], rounds(counter[i], key[i], word)) << word << ' ' << i;
    }
}

}  // namespace
}  // namespace tenon::test
