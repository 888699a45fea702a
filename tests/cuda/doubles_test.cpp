// The doubles themselves: what they find in kernels, and that they compile a text once.
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/cuda/route.h"

namespace tenon::gpu::test {
namespace {
namespace fs = std::filesystem;

KernelSpec one_buffer(const char* name) {
  KernelSpec s;
  s.name = name;
  s.buffers.push_back({"y", TN_U32, true});
  return s;
}

std::string text(const char* name, const std::string& body) {
  return std::string("extern \"C\" __global__ void __launch_bounds__(64) ") + name + "(unsigned* y) {\n" + body + "\n}\n";
}

class Found : public Route {
 protected:
  // How the work of one block of 64 threads ends, with the driver's number in diag_.
  tn_status end_of(const std::string& body, uint32_t threads = 64) {
    const auto k = kernel(one_buffer("k"), text("k", body));
    const Memory y = upload(std::vector<uint32_t>(64));
    if (tn_status s = launch(*k, {{y.handle, 0, 256}}, "", 1, threads); s != TN_OK) return s;
    const tn_status s = finish();
    const tn_diag said = diag_;
    Double::get().reset();
    diag_ = said;
    return s;
  }
};

TEST_F(Found, a_load_behind_the_end) {
  set("ALIGN", "16");
  EXPECT_EQ(end_of("if (y[threadIdx.x + 1u] == 5u) y[0] = 1u;"), TN_E_DEVICE_LOST);
  EXPECT_EQ(diag_.native_code, 700);
}

TEST_F(Found, an_address_that_was_never_given_out) {
  EXPECT_EQ(end_of("y[threadIdx.x + 0x7fffff00u] = 1u;"), TN_E_DEVICE_LOST);
  EXPECT_EQ(diag_.native_code, 700);
}

TEST_F(Found, a_division_by_zero) {
  EXPECT_EQ(end_of("y[threadIdx.x] = 7u / y[0];"), TN_E_DEVICE_LOST);
  EXPECT_EQ(diag_.native_code, 715);
}

TEST_F(Found, lanes_that_exchange_while_others_wait_at_a_barrier) {
  const std::string exchange = is_cuda() ? "__shfl_xor_sync(0xffffffffu, threadIdx.x, 1)" : "__shfl_xor((int)threadIdx.x, 1)";
  EXPECT_EQ(end_of("if (threadIdx.x < 3u) __syncthreads(); else y[0] = " + exchange + ";"), TN_E_DEVICE_LOST);
  EXPECT_EQ(diag_.native_code, 719);
}

TEST_F(Found, a_device_works_again_for_the_next_test) { EXPECT_EQ(end_of("y[threadIdx.x] = 1u;"), TN_OK); }

TEST_F(Found, an_empty_launch) {
  EXPECT_EQ(end_of("y[threadIdx.x] = 1u;", 0), TN_E_FAILED);
  EXPECT_EQ(diag_.native_code, 1);
}

// A folder of its own for compiled kernels.
class Cache : public Route {
 protected:
  Cache() : folder_(fs::temp_directory_path() / ("tenon-cache-" + std::to_string(getpid()) + "-" + driver_name())) {
    fs::remove_all(folder_);
    set("CACHE", folder_.string());
    setenv("TENON_DOUBLE_CACHE", folder_.c_str(), 1);  // for the compiler's process
  }
  ~Cache() override {
    unsetenv("TENON_DOUBLE_CACHE");
    set("CACHE", TENON_DEFAULT_CACHE);
    fs::remove_all(folder_);
  }
  size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator())); }
  tn_status compile(const std::string& body) {
    std::string binary;
    return device().compile(one_buffer("k"), text("k", body), {}, &binary, &diag_);
  }
  const fs::path folder_;
};

TEST_F(Cache, equal_texts_are_compiled_once) {
  ASSERT_EQ(compile("y[0] = 1u;"), TN_OK) << diag_.msg;
  const auto written = fs::last_write_time(fs::directory_iterator(folder_)->path());
  ASSERT_EQ(compile("y[0] = 1u;"), TN_OK);
  EXPECT_EQ(fs::last_write_time(fs::directory_iterator(folder_)->path()), written);
  ASSERT_EQ(compile("y[0] = 2u;"), TN_OK);
  EXPECT_EQ(files(), 2u);
}

TEST_F(Cache, eight_processes_at_once_leave_one_whole_file) {
  device();
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(compile("y[0] = 3u;") == TN_OK ? 0 : 1);
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(files(), 1u);
  const auto k = kernel(one_buffer("k"), text("k", "y[0] = 3u;"));
  const Memory y = upload(std::vector<uint32_t>(1));
  ASSERT_EQ(launch(*k, {{y.handle, 0, 4}}, "", 1, 64), TN_OK);
  EXPECT_EQ(download<uint32_t>(y, 1)[0], 3u);
}

}  // namespace
}  // namespace tenon::gpu::test
