// What is found, and what the configuration may say.
#include "tests/vulkan/fixture.h"

#include <algorithm>

namespace tenon::vulkan::test {
namespace {

class Devices : public VulkanTest {};

TEST_F(Devices, of_software_are_emulated_processors_whose_uuid_is_not_trusted) {
  for (const gpu::DeviceFacts& f : rig->facts) {
    if (std::string(f.info.name).find("llvmpipe") == std::string::npos) continue;
    EXPECT_TRUE(f.emulated);
    EXPECT_NE(f.info.flags & TN_DEVICE_EMULATED, 0u);
    EXPECT_EQ(f.info.flags & TN_DEVICE_UUID_TRUSTED, 0u);
    EXPECT_EQ(f.info.kind, static_cast<uint32_t>(TN_KIND_VULKAN));
    EXPECT_NE(std::string(f.info.driver).find("Mesa"), std::string::npos) << f.info.driver;
    return;
  }
  GTEST_SKIP() << "no software device here";
}

TEST_F(Devices, state_limits_that_kernels_can_be_made_for) {
  const gpu::Caps& caps = device().caps();
  EXPECT_EQ(caps.dialect, gpu::Dialect::Glsl);
  EXPECT_GE(caps.param_bytes, 128u);              // what Vulkan promises
  EXPECT_GE(caps.local_bytes, 16384u);
  EXPECT_GE(caps.max_threads, 128u);
  EXPECT_GE(caps.binding_bytes, uint64_t{1} << 27);
  EXPECT_GE(caps.max_bindings, 4u);
  EXPECT_EQ(caps.binding_align & (caps.binding_align - 1), 0u);
  EXPECT_LE(caps.subgroup_min, caps.subgroup_max);
  EXPECT_NE(caps.storage & caps.arithmetic & uint64_t{1} << TN_F32, 0u);
}

TEST_F(Devices, have_a_cache_key_that_names_compiler_and_driver) {
  const std::string key = device().cache_key();
  EXPECT_NE(key.find("glslang"), std::string::npos) << key;
  EXPECT_NE(key.find(rig->facts[0].info.driver), std::string::npos) << key;
}

TEST_F(Devices, are_found_again_in_the_same_order_by_a_second_driver) {
  const Rig second(Config{});
  ASSERT_EQ(second.facts.size(), rig->facts.size());
  for (size_t i = 0; i < second.facts.size(); ++i) EXPECT_STREQ(second.facts[i].info.name, rig->facts[i].info.name);
}

TEST_F(Devices, beyond_the_last_are_not_found) {
  std::unique_ptr<gpu::Device> none;
  tn_diag diag{};
  EXPECT_EQ(rig->driver->open_device(1000, &none, &diag), TN_E_NOT_FOUND);
  EXPECT_NE(std::string(diag.msg).find("vulkan:1000"), std::string::npos) << diag.msg;
}

TEST(Settings, that_are_no_numbers_are_named) {
  for (const char* bad : {"yes", "", "3", "-1", "1x"}) {
    Host host(Config{{"vulkan.validation", bad}});
    std::unique_ptr<gpu::Driver> driver;
    tn_diag diag{};
    EXPECT_EQ(gpu::make_driver(host.get(), &driver, &diag), TN_E_ARG) << bad;
    EXPECT_NE(std::string(diag.msg).find("vulkan.validation"), std::string::npos) << diag.msg;
  }
}

}  // namespace
}  // namespace tenon::vulkan::test
