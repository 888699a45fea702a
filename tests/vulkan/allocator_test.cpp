// Which ranges and memory types are chosen: without a device.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "backends/vulkan/memory.h"
#include "backends/vulkan/staging.h"
#include "tests/vulkan/fixture.h"

namespace tenon::vulkan {
namespace {

TEST(FreeRanges, takes_the_smallest_range_that_fits) {
  FreeRanges ranges(1000);
  uint64_t a = 0, b = 0, c = 0, small = 0;
  ASSERT_TRUE(ranges.take(500, 1, &a));
  ASSERT_TRUE(ranges.take(100, 1, &b));
  ASSERT_TRUE(ranges.take(200, 1, &c));
  ranges.give(b, 100);
  ASSERT_TRUE(ranges.take(80, 1, &small));  // 100 bytes between, 200 at the end
  EXPECT_EQ(small, b);
}

TEST(FreeRanges, aligns_and_gives_back_what_lay_before) {
  FreeRanges ranges(4096);
  uint64_t first = 0, aligned = 0, between = 0;
  ASSERT_TRUE(ranges.take(1, 1, &first));
  ASSERT_TRUE(ranges.take(256, 256, &aligned));
  EXPECT_EQ(aligned, 256u);
  ASSERT_TRUE(ranges.take(255, 1, &between));
  EXPECT_EQ(between, 1u);
}

TEST(FreeRanges, says_no_when_only_the_alignment_does_not_fit) {
  FreeRanges ranges(300);
  uint64_t first = 0, aligned = 0;
  ASSERT_TRUE(ranges.take(1, 1, &first));
  EXPECT_FALSE(ranges.take(100, 256, &aligned));
  EXPECT_TRUE(ranges.take(44, 256, &aligned));
}

TEST(FreeRanges, never_hands_out_a_byte_twice_and_is_whole_again_at_the_end) {
  constexpr uint64_t kSize = 1 << 16;
  FreeRanges ranges(kSize);
  std::map<uint64_t, uint64_t> live;
  std::vector<bool> used(kSize);
  std::mt19937 random(7);
  for (int step = 0; step < 4000; ++step) {
    const uint64_t bytes = 1 + random() % 3000, align = uint64_t{1} << random() % 9;
    uint64_t at = 0;
    if (random() % 5 < 3 && ranges.take(bytes, align, &at)) {
      ASSERT_EQ(at % align, 0u);
      ASSERT_LE(at + bytes, kSize);
      for (uint64_t i = at; i < at + bytes; ++i) {
        ASSERT_FALSE(used[i]);
        used[i] = true;
      }
      live.emplace(at, bytes);
    } else if (!live.empty()) {
      const auto it = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      for (uint64_t i = it->first; i < it->first + it->second; ++i) used[i] = false;
      ranges.give(it->first, it->second);
      live.erase(it);
    }
  }
  for (const auto& [at, bytes] : live) ranges.give(at, bytes);
  EXPECT_TRUE(ranges.untouched());
}

VkPhysicalDeviceMemoryProperties types(std::vector<VkMemoryPropertyFlags> flags) {
  VkPhysicalDeviceMemoryProperties m{};
  m.memoryHeapCount = 1;
  m.memoryHeaps[0].size = 1 << 30;
  for (const VkMemoryPropertyFlags f : flags) m.memoryTypes[m.memoryTypeCount++] = {f, 0};
  return m;
}
constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, kVisible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
                                kCoherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

TEST(MemoryType, of_a_card_is_not_the_window_that_the_host_sees) {
  const auto m = types({kLocal | kVisible | kCoherent, kLocal, kVisible | kCoherent, kVisible | kCoherent | kCached});
  EXPECT_EQ(choose_memory_type(m, MemoryKind::Device, ~0u), 1u);
  EXPECT_EQ(choose_memory_type(m, MemoryKind::Host, ~0u), 3u);
}
TEST(MemoryType, of_a_processor_is_the_one_there_is) {
  const auto m = types({kLocal | kVisible | kCoherent | kCached});
  EXPECT_EQ(choose_memory_type(m, MemoryKind::Device, ~0u), 0u);
  EXPECT_EQ(choose_memory_type(m, MemoryKind::Host, ~0u), 0u);
}
TEST(MemoryType, is_never_one_that_would_need_flushes_or_that_is_not_allowed) {
  const auto m = types({kLocal, kVisible | kCached, kVisible | kCoherent});
  EXPECT_EQ(choose_memory_type(m, MemoryKind::Host, ~0u), 2u);
  EXPECT_EQ(choose_memory_type(m, MemoryKind::Host, 0b011u), static_cast<uint32_t>(VK_MAX_MEMORY_TYPES));
}
TEST(MemoryType, is_in_the_larger_heap_among_equals) {
  auto m = types({kLocal | kVisible | kCoherent, kLocal | kVisible | kCoherent});
  m.memoryHeapCount = 2;
  m.memoryHeaps[0].size = 256 << 20, m.memoryHeaps[1].size = uint64_t{8} << 30;
  m.memoryTypes[1].heapIndex = 1;
  EXPECT_EQ(choose_memory_type(m, MemoryKind::Device, ~0u), 1u);
}

}  // namespace

namespace test {
namespace {

class DeviceMemory : public VulkanTest {};

TEST_F(DeviceMemory, of_thousands_of_small_buffers_takes_few_allocations_and_keeps_their_bytes_apart) {
  auto s = stream();
  std::vector<gpu::Memory> all;
  for (uint32_t i = 0; i < 5000; ++i) {
    all.push_back(alloc(4 + i % 900));
    put(*s, all.back(), &i, 4);
  }
  std::vector<uint32_t> back(all.size());
  for (size_t i = 0; i < all.size(); ++i) get(*s, &back[i], all[i], 4);
  finish(*s);
  for (uint32_t i = 0; i < back.size(); ++i) EXPECT_EQ(back[i], i);
  for (const auto& m : all) device().free(m.handle);
}

TEST_F(DeviceMemory, that_is_host_visible_has_an_address_and_the_other_has_none) {
  const auto host = alloc(1000, true), own = alloc(1000, false);
  ASSERT_NE(host.host, nullptr);
  EXPECT_EQ(own.host, nullptr);
  auto s = stream();
  static_cast<char*>(host.host)[999] = 42;
  tn_diag diag{};
  ASSERT_EQ(s->copy({own.handle, 0, nullptr}, {host.handle, 0, nullptr}, 1000, &diag), TN_OK) << diag.msg;
  char last = 0;
  get(*s, &last, own, 1, 999);
  finish(*s);
  EXPECT_EQ(last, 42);
  device().free(host.handle), device().free(own.handle);
}

TEST_F(DeviceMemory, beyond_the_heap_is_refused_with_the_numbers) {
  gpu::Memory m;
  tn_diag diag{};
  EXPECT_EQ(device().alloc(uint64_t{1} << 60, 256, false, &m, &diag), TN_E_OOM);
  EXPECT_NE(std::string(diag.msg).find("1152921504606846976 bytes asked"), std::string::npos) << diag.msg;
}

TEST_F(DeviceMemory, is_given_up_to_what_the_device_states_and_again_after_a_free) {
  const uint64_t eighth = rig->facts[0].info.mem_total_bytes / 8;
  std::vector<gpu::Memory> all;
  gpu::Memory m;
  tn_diag diag{};
  while (all.size() <= 8 && device().alloc(eighth, 256, false, &m, &diag) == TN_OK) all.push_back(m);
  EXPECT_LE(all.size(), 8u);
  EXPECT_GE(all.size(), 6u);
  EXPECT_EQ(diag.status, TN_E_OOM);
  device().free(all.back().handle);
  all.back() = alloc(eighth);
  for (const gpu::Memory& one : all) device().free(one.handle);
}

TEST_F(DeviceMemory, of_zero_bytes_can_be_had_and_freed) {
  const auto m = alloc(0);
  EXPECT_NE(m.handle, 0u);
  device().free(m.handle);
}

}  // namespace
}  // namespace test
}  // namespace tenon::vulkan
