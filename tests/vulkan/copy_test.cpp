// Copies of every size and way, and fills.
#include <algorithm>
#include <cstring>
#include <random>

#include "tests/vulkan/fixture.h"

namespace tenon::vulkan::test {
namespace {

std::vector<uint8_t> noise(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<uint8_t>(random());
  return v;
}

class Copy : public VulkanTest {};

// There and back through `d`, at odd addresses and offsets, with what surrounds the range untouched.
void round_trip(gpu::Device& d, uint64_t bytes) {
  std::unique_ptr<gpu::Stream> s;
  gpu::Memory m;
  tn_diag diag{};
  ASSERT_EQ(d.open_stream(0, &s, &diag), TN_OK) << diag.msg;
  ASSERT_EQ(d.alloc(bytes + 7, 256, false, &m, &diag), TN_OK) << diag.msg;
  const std::vector<uint8_t> source = noise(bytes + 1, static_cast<uint32_t>(bytes));
  std::vector<uint8_t> back(bytes + 2, 0xEE);
  ASSERT_EQ(s->copy({m.handle, 3, nullptr}, {0, 0, const_cast<uint8_t*>(source.data()) + 1}, bytes, &diag), TN_OK) << diag.msg;
  ASSERT_EQ(s->copy({0, 0, back.data() + 1}, {m.handle, 3, nullptr}, bytes, &diag), TN_OK) << diag.msg;
  std::shared_ptr<gpu::Fence> fence;
  ASSERT_EQ(s->fence(&fence, &diag), TN_OK) << diag.msg;
  ASSERT_EQ(fence->wait(TN_FOREVER, &diag), TN_OK) << diag.msg;
  EXPECT_EQ(back.front(), 0xEE);
  EXPECT_EQ(back.back(), 0xEE);
  EXPECT_EQ(memcmp(back.data() + 1, source.data() + 1, bytes), 0) << bytes;
  d.free(m.handle);
}

TEST_F(Copy, of_sizes_from_nothing_on_come_back_as_they_were) {
  for (uint64_t bytes = 0; bytes <= 70; ++bytes) round_trip(device(), bytes);
  for (const uint64_t bytes : {4095u, 4096u, 65537u, (1u << 20) - 1, 1u << 20, (4u << 20) + 1, 9000001u}) round_trip(device(), bytes);
}

TEST_F(Copy, of_sizes_from_nothing_on_come_back_through_staging_memory_too) {
  Rig plain(Config{{"vulkan.validation", "2"}, {"vulkan.import_host", "0"}});
  ASSERT_NE(plain.device, nullptr) << plain.why;
  for (const uint64_t bytes : {1u, 65537u, (1u << 20) + 1, (4u << 20) - 1, 4u << 20, (4u << 20) + 1, 9000001u}) round_trip(*plain.device, bytes);
}

TEST_F(Copy, larger_than_the_staging_memory_wait_for_room) {
  Rig narrow(Config{{"vulkan.validation", "2"}, {"vulkan.import_host", "0"}, {"vulkan.staging_bytes", "8388608"}});
  ASSERT_NE(narrow.device, nullptr) << narrow.why;
  round_trip(*narrow.device, 40000001);
}

TEST_F(Copy, of_300_megabytes_in_place_and_staged) {
  Rig plain(Config{{"vulkan.import_host", "0"}});
  ASSERT_NE(plain.device, nullptr) << plain.why;
  round_trip(*plain.device, 300u << 20);
  round_trip(device(), 300u << 20);
}


TEST_F(Copy, from_host_memory_that_an_earlier_copy_fills_sees_what_it_filled) {
  for (const uint64_t bytes : {uint64_t{1000}, uint64_t{3} << 20}) {
    const auto a = alloc(bytes), b = alloc(bytes);
    auto s = stream(), other = stream();
    const std::vector<uint8_t> source = noise(bytes, 5);
    std::vector<uint8_t> between(bytes, 0), back(bytes, 0);
    put(*s, a, source.data(), bytes);
    get(*s, between.data(), a, bytes);
    std::shared_ptr<gpu::Fence> fence;
    ASSERT_EQ(s->fence(&fence, nullptr), TN_OK);
    ASSERT_EQ(other->wait(fence, nullptr), TN_OK);
    put(*other, b, between.data(), bytes);
    get(*other, back.data(), b, bytes);
    finish(*other);
    EXPECT_EQ(between, source);
    EXPECT_EQ(back, source);
    device().free(a.handle), device().free(b.handle);
  }
}

TEST_F(Copy, of_different_sizes_into_one_host_range_end_in_the_order_they_were_made) {
  const uint64_t bytes = 2 << 20;
  const auto a = alloc(bytes), b = alloc(bytes);
  auto s = stream();
  const std::vector<uint8_t> ones(bytes, 1), twos(bytes, 2);
  put(*s, a, ones.data(), bytes), put(*s, b, twos.data(), bytes);
  std::vector<uint8_t> back(bytes);
  get(*s, back.data(), a, 1000);    // staged
  get(*s, back.data(), b, bytes);   // in place, and later
  finish(*s);
  EXPECT_EQ(back, twos);
  device().free(a.handle), device().free(b.handle);
}

TEST_F(Copy, on_the_device_moves_any_bytes) {
  const auto a = alloc(1000), b = alloc(1000);
  auto s = stream();
  const std::vector<uint8_t> source = noise(1000, 3);
  std::vector<uint8_t> back(1000);
  put(*s, a, source.data(), 1000);
  ASSERT_EQ(s->fill_zero(b.handle, 0, 1000, nullptr), TN_OK);
  ASSERT_EQ(s->copy({b.handle, 1, nullptr}, {a.handle, 501, nullptr}, 333, nullptr), TN_OK);
  ASSERT_EQ(s->copy({a.handle, 600, nullptr}, {a.handle, 0, nullptr}, 400, nullptr), TN_OK);
  get(*s, back.data(), b, 1000);
  finish(*s);
  EXPECT_EQ(back[0], 0);
  EXPECT_EQ(memcmp(&back[1], &source[501], 333), 0);
  EXPECT_EQ(std::count(back.begin() + 334, back.end(), 0), 1000 - 334);
  get(*s, back.data(), a, 1000);
  finish(*s);
  EXPECT_EQ(memcmp(&back[600], &source[0], 400), 0);
  device().free(a.handle), device().free(b.handle);
}

TEST_F(Copy, refuses_ranges_outside_and_overlaps) {
  const auto m = alloc(100);
  auto s = stream();
  uint8_t host[100];
  tn_diag diag{};
  EXPECT_EQ(s->copy({0, 0, host}, {m.handle, 1, nullptr}, 100, &diag), TN_E_ARG);
  EXPECT_NE(std::string(diag.msg).find("100 bytes from 1 on, of 100"), std::string::npos) << diag.msg;
  EXPECT_EQ(s->copy({m.handle, ~uint64_t{0}, nullptr}, {0, 0, host}, 2, &diag), TN_E_ARG);
  EXPECT_EQ(s->copy({m.handle, 10, nullptr}, {m.handle, 0, nullptr}, 11, &diag), TN_E_ARG);
  EXPECT_EQ(s->fill_zero(m.handle, 0, 104, &diag), TN_E_ARG);
  EXPECT_EQ(s->fill_zero(m.handle, 2, 4, &diag), TN_E_ARG);
  device().free(m.handle);
}

}  // namespace
}  // namespace tenon::vulkan::test
