// The choice of a compiler's target, and the parts that only CUDA has.
#include "backends/cuda/nvrtc.h"

#include "tests/cuda/route.h"

namespace tenon::gpu::test {
namespace {

TEST(NearestTarget, is_the_architecture_itself_or_the_next_lower_that_its_machine_code_runs_on) {
  const std::vector<int> known{75, 80, 86, 90, 100, 120};
  EXPECT_EQ(cuda::nearest_target(known, 90), "sm_90");
  EXPECT_EQ(cuda::nearest_target(known, 89), "sm_86");
  EXPECT_EQ(cuda::nearest_target(known, 121), "sm_120");
}

TEST(NearestTarget, is_intermediate_code_across_major_versions) {
  EXPECT_EQ(cuda::nearest_target({75, 80, 86}, 90), "compute_86");
  EXPECT_EQ(cuda::nearest_target({75, 80, 86}, 130), "compute_86");
}

TEST(NearestTarget, is_none_when_the_compiler_is_too_new) {
  EXPECT_EQ(cuda::nearest_target({75, 80}, 70), "");
  EXPECT_EQ(cuda::nearest_target({}, 90), "");
}

TEST_F(Route, a_device_newer_than_the_compiler_gets_intermediate_code) {
  set("ARCH", "sm_130");
  EXPECT_NE(device().cache_key().find("compute_121"), std::string::npos) << device().cache_key();
  KernelSpec s;
  s.name = "one";
  s.buffers.push_back({"y", TN_F32, true});
  const auto k = kernel(s, "extern \"C\" __global__ void __launch_bounds__(1) one(float* y) { y[0] = 1.0f; }");
  const Memory y = alloc(4);
  ASSERT_EQ(launch(*k, {{y.handle, 0, 4}}, "", 1, 1), TN_OK) << diag_.msg;
  EXPECT_EQ(download<float>(y, 1)[0], 1.0f);
}

TEST_F(Route, a_device_older_than_the_compiler_is_told_which_compiler_it_needs) {
  set("ARCH", "sm_61");
  std::string binary;
  EXPECT_EQ(device().compile({}, "", {}, &binary, &diag_), TN_E_UNAVAILABLE);
  EXPECT_TRUE(says("sm_61")) << diag_.msg;
  EXPECT_TRUE(says("sm_75")) << diag_.msg;
}

// The options mean the same to the real compiler, where there is one; it needs no driver.
TEST(RealNvrtc, takes_the_options_and_gives_machine_code) {
  std::unique_ptr<cu_like::Compiler> compiler;
  tn_diag diag{};
  if (cuda::Nvrtc::open(nullptr, &compiler, &diag) != TN_OK) GTEST_SKIP() << diag.msg;
  for (const char* arch : {"sm_80", "sm_90", "sm_100"}) {
    std::string target, binary;
    ASSERT_EQ(compiler->target(arch, &target, &diag), TN_OK) << diag.msg;
    ASSERT_EQ(compiler->compile("madd", "extern \"C\" __global__ void madd(float* y, float a, float b) { y[0] = y[0] * a + b; }", target, &binary, &diag), TN_OK) << diag.msg;
    EXPECT_EQ(binary.compare(0, 4, "\x7f" "ELF"), 0) << arch;
  }
  std::string ptx;
  ASSERT_EQ(compiler->compile("madd", "extern \"C\" __global__ void madd(float* y, float a, float b) { y[0] = y[0] * a + b; }", "compute_80", &ptx, &diag), TN_OK) << diag.msg;
  EXPECT_NE(ptx.find("mul.rn.f32"), std::string::npos) << ptx;
  EXPECT_EQ(ptx.find("fma"), std::string::npos) << "contraction is off";
}

}  // namespace
}  // namespace tenon::gpu::test
