// When copies to host memory are complete: without a device.
#include "backends/vulkan/landings.h"

#include <gtest/gtest.h>

namespace tenon::vulkan {
namespace {

Landings::Landing landing(uint64_t value, int* host, const int* staged) { return {value, host, sizeof(int), staged, nullptr}; }

TEST(Landings, happen_up_to_the_value_that_is_reached_and_once) {
  Landings landings;
  int staged[2] = {1, 2}, host[2] = {};
  landings.add(7, landing(1, &host[0], &staged[0]));
  landings.add(7, landing(2, &host[1], &staged[1]));
  landings.settle(7, 1);
  EXPECT_EQ(host[0], 1);
  EXPECT_EQ(host[1], 0);
  host[0] = 9;  // the caller's again
  landings.settle(7, 2);
  EXPECT_EQ(host[0], 9);
  EXPECT_EQ(host[1], 2);
}

TEST(Landings, of_a_stream_that_was_waited_for_come_along) {
  Landings landings;
  int staged = 5, host = 0;
  landings.add(1, landing(3, &host, &staged));
  landings.follow(2, 10, 1, 3);   // stream 2 from 10 on runs after stream 1 reached 3
  landings.follow(3, 20, 2, 10);  // and stream 3 after that
  landings.settle(3, 19);
  EXPECT_EQ(host, 0);
  landings.settle(3, 20);
  EXPECT_EQ(host, 5);
}

TEST(Landings, of_later_work_of_that_stream_do_not) {
  Landings landings;
  int staged[2] = {5, 6}, host[2] = {};
  landings.add(1, landing(3, &host[0], &staged[0]));
  landings.add(1, landing(4, &host[1], &staged[1]));
  landings.follow(2, 1, 1, 3);
  landings.settle(2, 1);
  EXPECT_EQ(host[0], 5);
  EXPECT_EQ(host[1], 0);
}

TEST(Landings, of_two_streams_that_wait_for_each_other_in_turn_all_happen) {
  Landings landings;
  int staged[2] = {5, 6}, host[2] = {};
  landings.add(1, landing(1, &host[0], &staged[0]));
  landings.follow(2, 1, 1, 1);
  landings.add(2, landing(1, &host[1], &staged[1]));
  landings.follow(1, 2, 2, 1);
  landings.settle(1, 2);
  EXPECT_EQ(host[0], 5);
  EXPECT_EQ(host[1], 6);
}

TEST(Landings, under_way_are_known_by_the_bytes_they_write) {
  Landings landings;
  char host[100];
  landings.add(1, {1, host + 10, 20, nullptr, nullptr});
  EXPECT_TRUE(landings.writes(host + 29, 1));
  EXPECT_TRUE(landings.writes(host, 100));
  EXPECT_FALSE(landings.writes(host, 10));
  EXPECT_FALSE(landings.writes(host + 30, 70));
  landings.settle(1, 1);
  EXPECT_FALSE(landings.writes(host, 100));
}

TEST(Landings, let_go_of_what_they_stood_on) {
  Landings landings;
  auto slab = std::make_shared<int>(3);
  int host = 0;
  landings.add(1, {1, &host, sizeof host, slab.get(), slab});
  landings.add(2, {1, &host, sizeof host, slab.get(), slab});
  landings.settle(1, 1);
  EXPECT_EQ(slab.use_count(), 2);
  landings.drop(2);
  EXPECT_EQ(slab.use_count(), 1);
}

}  // namespace
}  // namespace tenon::vulkan
