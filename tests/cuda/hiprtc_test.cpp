// The compiler in a process of its own.
#include "backends/rocm/hiprtc.h"

#include "backends/rocm/child.h"
#include "tests/cuda/route.h"

namespace tenon::gpu::test {
namespace {

struct Environment {
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }
  const char* name_;
};
const char* const kText = "extern \"C\" __global__ void __launch_bounds__(1) one(float* y) { y[0] = 1.0f; }";

KernelSpec one() {
  KernelSpec s;
  s.name = "one";
  s.buffers.push_back({"y", TN_F32, true});
  return s;
}

TEST_F(Route, a_compiler_that_aborts_ends_its_own_process_only) {
  device();
  const Environment fault("TENON_DOUBLE_COMPILER_FAULT", "abort");
  std::string binary;
  EXPECT_EQ(device().compile(one(), kText, {}, &binary, &diag_), TN_E_FAILED);
  EXPECT_TRUE(says("SIGABRT")) << diag_.msg;
  EXPECT_TRUE(says("munmap_chunk")) << diag_.msg;
  EXPECT_TRUE(says("gfx90a")) << diag_.msg;
}

TEST_F(Route, a_compiler_that_hangs_is_ended_when_its_time_is_over) {
  config_["rocm.compile_timeout_ms"] = "200";
  device();
  const Environment fault("TENON_DOUBLE_COMPILER_FAULT", "hang");
  std::string binary;
  EXPECT_EQ(device().compile(one(), kText, {}, &binary, &diag_), TN_E_FAILED);
  EXPECT_TRUE(says("200 ms")) << diag_.msg;
}

TEST_F(Route, a_missing_helper_is_named) {
  config_["rocm.hiprtc_helper"] = "/nowhere/tenon-hiprtc";
  EXPECT_EQ(try_driver(), TN_E_UNAVAILABLE);
  EXPECT_TRUE(says("/nowhere/tenon-hiprtc")) << diag_.msg;
}

TEST_F(Route, a_bad_time_is_refused) {
  for (const char* bad : {"0", "-1", "soon", "10s", "99999999999"}) {
    config_["rocm.compile_timeout_ms"] = bad;
    EXPECT_EQ(try_driver(), TN_E_ARG) << bad;
    EXPECT_TRUE(says(bad)) << diag_.msg;
  }
}

TEST_F(Route, an_architecture_without_a_gfx_name_is_not_asked_for) {
  for (const char* good : {"gfx906", "gfx90a:sramecc+:xnack-", "gfx1030", "gfx1201"}) EXPECT_TRUE(rocm::is_target(good)) << good;
  for (const char* bad : {"", "gfx", "sm_90", "gfx90a;rm", "gfx90a -x"}) EXPECT_FALSE(rocm::is_target(bad)) << bad;
}

TEST_F(Route, wave32_architectures_have_narrow_lanes_and_their_own_code) {
  set("ARCH", "gfx1030");
  EXPECT_EQ(device().caps().subgroup_max, 32u);
  EXPECT_EQ(device().caps().matrix, 0u);
  const auto k = kernel(one(), kText);
  const Memory y = alloc(4);
  ASSERT_EQ(launch(*k, {{y.handle, 0, 4}}, "", 1, 1), TN_OK) << diag_.msg;
  EXPECT_EQ(download<float>(y, 1)[0], 1.0f);
}

TEST(Child, passes_any_amount_of_bytes_both_ways) {
  std::string text(3000000, 0);
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31);
  const rocm::ChildEnd end = rocm::run_child({"/bin/cat"}, text, 60000);
  EXPECT_EQ(end.how, rocm::ChildEnd::Exited);
  EXPECT_EQ(end.number, 0);
  EXPECT_TRUE(end.output == text);
}

TEST(Child, that_reads_nothing_is_no_trouble) {
  const rocm::ChildEnd end = rocm::run_child({"/bin/false"}, std::string(1000000, 'x'), 60000);
  EXPECT_EQ(rocm::end_text(end, 60000), "exit status 1");
}

TEST(Child, that_cannot_start_says_why) {
  EXPECT_EQ(rocm::end_text(rocm::run_child({"/nowhere/program"}, "", 1000), 1000), "cannot be started: No such file or directory");
}

}  // namespace
}  // namespace tenon::gpu::test
