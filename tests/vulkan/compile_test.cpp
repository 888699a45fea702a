// Texts to modules, modules to pipelines.
#include <thread>

#include <cstring>

#include "tests/vulkan/fixture.h"

namespace tenon::vulkan::test {
namespace {

class Compile : public VulkanTest {};

TEST_F(Compile, gives_a_spirv_1_5_module) {
  std::string binary;
  tn_diag diag{};
  ASSERT_EQ(device().compile(affine_spec(), affine_text(false), {}, &binary, &diag), TN_OK) << diag.msg;
  ASSERT_GE(binary.size(), 20u);
  uint32_t head[2];
  memcpy(head, binary.data(), sizeof head);
  EXPECT_EQ(head[0], 0x07230203u);
  EXPECT_EQ(head[1], 0x00010500u);
}

TEST_F(Compile, tells_the_line_of_a_fault_in_the_text) {
  std::string binary, text = affine_text(false);
  text.replace(text.find("y[i] * a"), 8, "y[i] * nobody");
  tn_diag diag{};
  EXPECT_EQ(device().compile(affine_spec(), text, {}, &binary, &diag), TN_E_FAILED);
  const std::string msg = diag.msg;
  EXPECT_NE(msg.find("affine does not compile"), std::string::npos) << msg;
  EXPECT_NE(msg.find("nobody"), std::string::npos) << msg;
  EXPECT_NE(msg.find(":7:"), std::string::npos) << msg;  // the line
  EXPECT_NE(msg.find("\ntry: "), std::string::npos) << msg;
}

TEST_F(Compile, works_on_many_threads_at_once_and_gives_equal_modules) {
  std::string first;
  tn_diag diag{};
  ASSERT_EQ(device().compile(affine_spec(), affine_text(false), {}, &first, &diag), TN_OK) << diag.msg;
  std::vector<std::thread> threads;
  std::vector<std::string> binaries(4);
  for (std::string& binary : binaries)
    threads.emplace_back([&binary] {
      for (int i = 0; i < 8; ++i)
        if (device().compile(affine_spec(), affine_text(false), {}, &binary, nullptr) != TN_OK) binary.clear();
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& binary : binaries) EXPECT_EQ(binary, first);
}

TEST_F(Compile, refuses_to_load_what_is_no_module) {
  std::unique_ptr<gpu::Kernel> kernel;
  tn_diag diag{};
  EXPECT_EQ(device().load(affine_spec(), {}, "not a module at all.", &kernel, &diag), TN_E_FAILED);
  EXPECT_NE(std::string(diag.msg).find("SPIR-V"), std::string::npos) << diag.msg;
}

TEST_F(Compile, refuses_subgroups_that_the_device_does_not_have) {
  gpu::KernelSpec spec = affine_spec();
  spec.subgroup = device().caps().subgroup_max * 2;
  std::string binary;
  std::unique_ptr<gpu::Kernel> kernel;
  tn_diag diag{};
  ASSERT_EQ(device().compile(spec, affine_text(false), {}, &binary, &diag), TN_OK) << diag.msg;
  EXPECT_EQ(device().load(spec, {}, binary, &kernel, &diag), TN_E_UNSUPPORTED);
  EXPECT_NE(std::string(diag.msg).find("lanes"), std::string::npos) << diag.msg;
}

TEST_F(Compile, gives_a_kernel_the_subgroups_it_was_written_for) {
  const gpu::Caps& caps = device().caps();
  if (caps.subgroup_max == 1) GTEST_SKIP() << "no sub-groups here";
  gpu::KernelSpec spec;
  spec.name = "lanes", spec.buffers = {{"y", TN_U32, true}}, spec.subgroup = caps.subgroup_min, spec.group[0] = 64;
  const auto k = kernel(spec,
                        "#version 450\n#extension GL_KHR_shader_subgroup_basic : require\n#extension GL_KHR_shader_subgroup_arithmetic : require\nlayout(local_size_x = 64) in;\n"
                        "layout(std430, set = 0, binding = 0) buffer Y { uint y[]; };\nvoid main() { y[gl_LocalInvocationID.x] = subgroupAdd(1u); }\n");
  ASSERT_NE(k, nullptr);
  const auto m = alloc(256);
  auto s = stream();
  const gpu::Binding binding{m.handle, 0, 256};
  gpu::Dispatch d;
  d.kernel = k.get(), d.bindings = &binding, d.n_bindings = 1;
  tn_diag diag{};
  ASSERT_EQ(s->dispatch(d, &diag), TN_OK) << diag.msg;
  uint32_t lanes[64];
  get(*s, lanes, m, sizeof lanes);
  finish(*s);
  for (const uint32_t n : lanes) EXPECT_EQ(n, caps.subgroup_min);
  device().free(m.handle);
}

}  // namespace
}  // namespace tenon::vulkan::test
