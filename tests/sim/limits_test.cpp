// Limits that are set low: what passes one is refused with its name and both values; what keeps it runs.
#include <tenon/plugin.h>

#include "tests/sim/machine.h"

namespace tenon::test {
namespace {

TEST(Limits, of_a_buffer_are_named_with_what_was_asked) {
  const Machine m("sim.max_alloc_bytes=65536");
  const Device sim = m.device("sim:0");
  const Error e = thrown([&] { zeros({1 << 20}, {.device = sim}); });
  EXPECT_EQ(e.id(), "TN-DEVICE-053");
  EXPECT_EQ(e.summary(), "alloc: a buffer of sim:0 is too large");
  EXPECT_EQ(e.why(), "4194304 bytes asked, sim.max_alloc_bytes is 65536");
  EXPECT_EQ(e.advice(), "use a smaller batch, or raise sim.max_alloc_bytes");
  // Many that each fit may be more than one in sum.
  std::vector<Tensor> many;
  for (int i = 0; i < 40; ++i) many.push_back(zeros({16000}, {.device = sim}) + 1.0);
  EXPECT_EQ(many.back().to_vector<float>()[15999], 1);
  expect_cpu_goes_on(m);
}

TEST(Limits, of_a_buffer_are_told_to_who_asks_for_the_spaces) {
  const Machine m("sim.max_alloc_bytes=65536;sim.memory_bytes=1000000");
  tn_space_info info{};
  info.size = sizeof info;
  uint32_t n = 0;
  ASSERT_EQ(tn_spaces(m.get(), m.device("sim:0").id(), &info, sizeof info, 1, &n, nullptr), TN_OK);
  EXPECT_EQ(info.max_alloc_bytes, 65536u);
  EXPECT_EQ(info.budget_bytes, 1000000u);
}

TEST(Limits, of_the_rank_decline_the_kernels) {
  const Machine m("sim.max_rank=2", TN_POLICY_REQUIRE);
  const Device sim = m.device("sim:0");
  const Tensor flat = ones({4, 6}, {.device = sim}), deep = flat.reshape({2, 2, 6});
  EXPECT_EQ((flat + flat).to_vector<float>(), std::vector<float>(24, 2.f));
  const Error e = thrown([&] { sum(deep, {1}); });  // an elementwise call is told to the kernel with its axes merged
  EXPECT_TRUE(says(e, "rank 3, outside 0..2")) << e.what();
  EXPECT_TRUE(says(e, "sim")) << e.what();
  expect_cpu_goes_on(m);
}

TEST(Limits, of_an_operand_decline_the_kernels) {
  const Machine m("sim.max_operand_bytes=400", TN_POLICY_REQUIRE);
  const Device sim = m.device("sim:0");
  const Tensor fits = ones({100}, {.device = sim});
  EXPECT_EQ((fits + fits).to_vector<float>(), std::vector<float>(100, 2.f));
  const Tensor large = from_vector(std::vector<float>(101, 1.f), {101}, {.device = sim});
  const Error e = thrown([&] { large + large; });
  EXPECT_TRUE(says(e, "404 bytes, outside 0..400")) << e.what();
  expect_cpu_goes_on(m);
}

// Where the device is a wish only, the call moves to one that takes it.
TEST(Limits, leave_a_call_to_another_device_where_that_is_allowed) {
  const Machine m("sim.max_operand_bytes=400");
  const Tensor large = from_vector(std::vector<float>(101, 1.f), {101}, {.device = m.device("sim:0")});
  EXPECT_EQ((large + large).to_vector<float>(), std::vector<float>(101, 2.f));
}

}  // namespace
}  // namespace tenon::test
