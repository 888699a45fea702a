// Fences, waits of one stream for another, many streams on threads.
#include <atomic>
#include <thread>

#include "tests/vulkan/fixture.h"

namespace tenon::vulkan::test {
namespace {

class Streams : public VulkanTest {};

TEST_F(Streams, that_did_nothing_have_fences_that_are_over) {
  auto s = stream();
  std::shared_ptr<gpu::Fence> fence;
  ASSERT_EQ(s->fence(&fence, nullptr), TN_OK);
  EXPECT_EQ(fence->wait(0, nullptr), TN_OK);
}

TEST_F(Streams, fill_host_memory_before_a_look_at_the_fence_says_done) {
  const auto m = alloc(4096);
  auto s = stream();
  for (uint32_t round = 1; round < 200; ++round) {
    std::vector<uint32_t> source(1024, round), back(1024, 0);
    put(*s, m, source.data(), 4096);
    get(*s, back.data(), m, 4096);
    std::shared_ptr<gpu::Fence> fence;
    ASSERT_EQ(s->fence(&fence, nullptr), TN_OK);
    while (fence->wait(0, nullptr) == TN_E_TIMEOUT) std::this_thread::yield();
    ASSERT_EQ(back, source);
  }
  device().free(m.handle);
}

TEST_F(Streams, fill_host_memory_before_any_of_several_observers_goes_on) {
  const uint64_t bytes = 700 << 10;
  const auto m = alloc(bytes);
  auto s = stream();
  for (uint32_t round = 1; round < 20; ++round) {
    const std::vector<uint8_t> source(bytes, static_cast<uint8_t>(round));
    std::vector<uint8_t> back(bytes, 0);
    put(*s, m, source.data(), bytes);
    get(*s, back.data(), m, bytes);
    std::shared_ptr<gpu::Fence> fence;
    ASSERT_EQ(s->fence(&fence, nullptr), TN_OK);
    std::vector<std::thread> observers;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 3; ++t)
      observers.emplace_back([&] {
        if (fence->wait(TN_FOREVER, nullptr) != TN_OK || back.back() != round || back.front() != round) ++wrong;
      });
    for (std::thread& t : observers) t.join();
    ASSERT_EQ(wrong.load(), 0);
  }
  device().free(m.handle);
}

TEST_F(Streams, wait_for_one_another_in_turn) {
  const auto k = kernel(affine_spec(), affine_text(false));
  const auto m = alloc(256);
  auto a = stream(), b = stream();
  std::vector<uint32_t> y(64, 1);
  put(*a, m, y.data(), 256);
  uint32_t expected = 1;
  for (uint32_t i = 0; i < 200; ++i) {
    gpu::Stream &now = i % 2 == 0 ? *a : *b, &next = i % 2 == 0 ? *b : *a;
    launch_affine(now, *k, m, {64, 5, i, 0});
    expected = expected * 5 + i;
    std::shared_ptr<gpu::Fence> fence;
    ASSERT_EQ(now.fence(&fence, nullptr), TN_OK);
    ASSERT_EQ(next.wait(fence, nullptr), TN_OK);
  }
  get(*a, y.data(), m, 256);
  finish(*a);
  for (const uint32_t v : y) ASSERT_EQ(v, expected);
  device().free(m.handle);
}

TEST_F(Streams, that_waited_carry_the_others_copies_to_host_memory) {
  const auto m = alloc(1000);
  auto a = stream(), b = stream();
  const std::vector<uint8_t> source(1000, 77);
  std::vector<uint8_t> back(1000, 0);
  put(*a, m, source.data(), 1000);
  get(*a, back.data(), m, 1000);
  std::shared_ptr<gpu::Fence> of_a;
  ASSERT_EQ(a->fence(&of_a, nullptr), TN_OK);
  ASSERT_EQ(b->wait(of_a, nullptr), TN_OK);
  finish(*b);  // nobody looked at a's fence
  EXPECT_EQ(back, source);
  device().free(m.handle);
}

TEST_F(Streams, leave_fences_that_outlive_them) {
  std::shared_ptr<gpu::Fence> fence;
  {
    auto s = stream();
    const auto m = alloc(64);
    ASSERT_EQ(s->fill_zero(m.handle, 0, 64, nullptr), TN_OK);
    ASSERT_EQ(s->fence(&fence, nullptr), TN_OK);
    ASSERT_EQ(fence->wait(TN_FOREVER, nullptr), TN_OK);
    device().free(m.handle);
  }
  EXPECT_EQ(fence->wait(0, nullptr), TN_OK);
}

TEST_F(Streams, refuse_fences_of_other_devices) {
  Rig other(Config{{"vulkan.validation", "2"}});
  ASSERT_NE(other.device, nullptr) << other.why;
  std::unique_ptr<gpu::Stream> theirs;
  std::shared_ptr<gpu::Fence> fence;
  ASSERT_EQ(other.device->open_stream(0, &theirs, nullptr), TN_OK);
  ASSERT_EQ(theirs->fence(&fence, nullptr), TN_OK);
  tn_diag diag{};
  EXPECT_EQ(stream()->wait(fence, &diag), TN_E_UNSUPPORTED);
}

TEST_F(Streams, work_on_many_threads_at_once) {
  const auto k = kernel(affine_spec(), affine_text(false));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      auto s = stream(t % 2 == 0 ? 0 : 1);
      for (uint32_t round = 0; round < 20; ++round) {
        const auto m = alloc(40000);
        std::vector<uint32_t> y(10000, t), back(10000);
        put(*s, m, y.data(), 40000);
        for (uint32_t i = 0; i < 10; ++i) launch_affine(*s, *k, m, {10000, 1, round, 0});
        get(*s, back.data(), m, 40000);
        finish(*s);
        for (const uint32_t v : back) wrong += v != t + round * 10;
        device().free(m.handle);
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace tenon::vulkan::test
