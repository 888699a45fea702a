// Tensors: creation, views, slicing, in-place functions, conversions, errors, DLPack.
#include <gtest/gtest.h>
#include <tenon/tenon.hpp>

#include <climits>

namespace tenon::test {
namespace {

std::vector<int64_t> numbers(int64_t n) {
  std::vector<int64_t> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(i);
  return v;
}

TEST(Slice, of_bug_report_K04) {
  const Tensor x = from_vector(numbers(10), {10});
  auto at = [&](Slice s) { return x.slice({s}).to_vector<int64_t>(); };
  using V = std::vector<int64_t>;
  EXPECT_EQ(at({9, 0, -1}), (V{9, 8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(at({9, 0, -3}), (V{9, 6, 3}));
  EXPECT_EQ(at({-1, INT64_MIN, -1}), (V{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(at({-1, INT64_MAX, -1}), V{});
  EXPECT_EQ(at({0, 5, -1}), V{});
  EXPECT_EQ(x.slice({Slice{0, 5, -1}}).shape(), (Shape{0}));
  const Tensor y = from_vector(numbers(20), {20});
  EXPECT_EQ(y.slice({Slice{19, 0, -3}}).to_vector<int64_t>(), (V{19, 16, 13, 10, 7, 4, 1}));
}

// The definition, step by step: every index start, start + step, ... on the right side of stop.
std::vector<int64_t> by_definition(int64_t n, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step) {
  auto clamp = [&](int64_t v) { if (v < 0) v += n; return step > 0 ? std::clamp<int64_t>(v, 0, n) : std::clamp<int64_t>(v, -1, n - 1); };
  int64_t i = start ? clamp(*start) : step > 0 ? 0 : n - 1;
  const int64_t e = stop ? clamp(*stop) : step > 0 ? n : -1;
  std::vector<int64_t> out;
  for (; step > 0 ? i < e : i > e; i += step) out.push_back(i);
  return out;
}

TEST(Slice, agrees_with_its_definition_everywhere) {
  const std::optional<int64_t> ends[] = {std::nullopt, -7, -5, -4, -1, 0, 1, 3, 4, 5, 9};
  for (int64_t n : {0, 1, 4, 5})
    for (auto start : ends)
      for (auto stop : ends)
        for (int64_t step : {-6, -3, -2, -1, 1, 2, 3, 6}) {
          const auto want = by_definition(n, start, stop, step);
          const ResolvedSlice r = resolve({start, stop, step}, n);
          ASSERT_EQ(r.length, static_cast<int64_t>(want.size()));
          for (int64_t k = 0; k < r.length; ++k) ASSERT_EQ(r.start + k * r.step, want[static_cast<size_t>(k)]);
        }
}

TEST(Tensor, views_share_memory_and_clone_does_not) {
  Tensor x = from_vector(numbers(12), {3, 4});
  Tensor row = x[1], copy = x.clone();
  row.fill_(-1);
  EXPECT_EQ(x.to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2, 3, -1, -1, -1, -1, 8, 9, 10, 11}));
  EXPECT_EQ(copy.to_vector<int64_t>(), numbers(12));
  x.slice({Slice{}, Slice{{}, {}, 2}}).mul_(Tensor(tensor({int64_t{10}, int64_t{100}})));
  EXPECT_EQ(x[0].to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 200, 3}));
  EXPECT_EQ(x.t().reshape({-1}).to_vector<int64_t>().size(), 12u);
  EXPECT_EQ(x.t().dims()[0], 4);
}

TEST(Tensor, versions_are_shared_by_all_aliases) {
  Tensor x = zeros({4}), v = x.reshape({2, 2}), d = x.detach();
  const uint64_t before = x.version();
  v.add_(1);
  EXPECT_GT(x.version(), before);
  EXPECT_EQ(d.version(), x.version());
}

TEST(Tensor, numbers_beside_tensors_are_exact_or_refused) {
  const Tensor i = tensor({1, 2});
  EXPECT_EQ((i * 3).to_vector<int32_t>(), (std::vector<int32_t>{3, 6}));
  EXPECT_EQ((7 - i).to_vector<int32_t>(), (std::vector<int32_t>{6, 5}));
  EXPECT_EQ((i + 2.0).to_vector<int32_t>(), (std::vector<int32_t>{3, 4}));
  for (auto bad : {std::function<void()>([&] { i * 0.5; }), std::function<void()>([&] { i + 3000000000LL; })}) {
    try { bad(); FAIL(); } catch (const Error& e) { EXPECT_EQ(e.id(), "TN-DTYPE-101"); }
  }
}

TEST(Tensor, errors_name_line_op_device_and_values) {
  const Tensor a = zeros({2, 3}), b = zeros({4, 5});
  try {
    matmul(a, b);
    FAIL();
  } catch (const Error& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("error[TN-SHAPE-"), std::string::npos) << text;
    EXPECT_NE(text.find("\n  where: core_test.cpp:"), std::string::npos) << text;
    EXPECT_NE(text.find("op matmul, device cpu:0"), std::string::npos) << text;
    EXPECT_NE(text.find("\n  why:   "), std::string::npos) << text;
    EXPECT_NE(text.find("\n  try:   "), std::string::npos) << text;
  }
  try { Tensor() + a; FAIL(); } catch (const Error& e) { EXPECT_EQ(e.id(), "TN-ARG-101"); }
  try { a.item<float>(); FAIL(); } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).rfind("error[TN-SHAPE-103]: one element was asked of a tensor of more or less\n  where: core_test.cpp:", 0), 0u) << e.what();
    EXPECT_EQ(e.why(), "f32[2,3] holds 6 elements, 1 wanted");
  }
}

TEST(Tensor, creation) {
  EXPECT_EQ(arange(1, 2, 0.25).to_vector<float>(), (std::vector<float>{1, 1.25f, 1.5f, 1.75f}));
  EXPECT_EQ(arange(5, 0, -2, {.dtype = i64}).to_vector<int64_t>(), (std::vector<int64_t>{5, 3, 1}));
  EXPECT_EQ(eye(2).to_vector<float>(), (std::vector<float>{1, 0, 0, 1}));
  EXPECT_EQ(tensor({{1, 2}, {3, 4}}).shape(), (Shape{2, 2}));
  EXPECT_EQ(zeros({0, 3}).numel(), 0);
  EXPECT_EQ(tril(ones({2, 2})).to_vector<float>(), (std::vector<float>{1, 0, 1, 1}));
  EXPECT_EQ(tensor({1.5f}).to(f64).item<double>(), 1.5);
  EXPECT_EQ(tensor({{1.f, 2.f}}).to_string(), "[[1, 2]]  f32[1,2] cpu:0");
}

TEST(Random, is_reproducible_from_its_state) {
  Generator g(7);
  const Tensor a = randn({5}, {.generator = &g});
  const GeneratorState s = g.state();
  const auto b = rand({6}, {.generator = &g}).to_vector<float>();
  EXPECT_NE(s, g.state());
  g.set_state(s);
  EXPECT_EQ(rand({6}, {.generator = &g}).to_vector<float>(), b);
  for (float v : b) EXPECT_TRUE(v >= 0 && v < 1);
}

TEST(HostMemory, is_used_in_place_and_dropped_once) {
  static int drops;
  drops = 0;
  alignas(64) static float data[4] = {1, 2, 3, 4};
  {
    Tensor x = from_blob(data, {2, 2}, f32, [](void*, void*) { ++drops; });
    Tensor view = x.t();
    data[1] = 20;
    EXPECT_EQ(view.to_vector<float>(), (std::vector<float>{1, 3, 20, 4}));
    x = Tensor();
    EXPECT_EQ(drops, 0);
  }
  EXPECT_EQ(drops, 1);
}

TEST(Dlpack, round_trip_shares_memory) {
  const int64_t before = live_tensors();
  {
    Tensor x = tensor({{1.f, 2.f}, {3.f, 4.f}});
    Tensor y = from_dlpack(to_dlpack(x.t()));
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 3, 2, 4}));
    static_cast<float*>(x.host_data())[1] = 9;
    EXPECT_EQ(y.to_vector<float>()[2], 9);
    EXPECT_EQ(from_dlpack_unversioned(to_dlpack_unversioned(x)).to_vector<float>(), x.to_vector<float>());
  }
  EXPECT_EQ(live_tensors(), before);
}

}  // namespace
}  // namespace tenon::test
