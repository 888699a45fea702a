// Driver classes over OpenCL, with a kernel text of the test's own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

#include "backends/opencl/device.h"

namespace tenon::gpu {
namespace {
using namespace opencl;

constexpr char kText[] = "__kernel void inc(__global uint* x, uint2 p) { if (get_global_id(0) < p.x) x[get_global_id(0)] += p.y; }";

class OpenCl : public testing::Test {
 protected:
  void SetUp() override {
    if (make_driver(&host_, &driver_, &diag_) != TN_OK) GTEST_SKIP() << diag_.msg;
    ASSERT_EQ(driver_->open_device(0, &device_, &diag_), TN_OK) << diag_.msg;
    ASSERT_EQ(device_->open_stream(0, &stream_, &diag_), TN_OK);
    spec_.name = "inc", spec_.buffers = {{"x", TN_U32, true}}, spec_.scalars = {{"n", TN_U32}, {"by", TN_U32}};
  }
  tn_status finish() {
    std::shared_ptr<Fence> fence;
    if (tn_status s = stream_->fence(&fence, &diag_); s != TN_OK) return s;
    return fence->wait(TN_FOREVER, &diag_);
  }
  // What a look at work says that takes a while.
  tn_status unfinished() {
    static constexpr char kSlow[] = "__kernel void inc(__global volatile uint* x, uint2 p) { for (uint i = 0; i < p.x; ++i) x[0] = x[0] * 3u + i; }";
    std::string binary;
    std::unique_ptr<Kernel> kernel;
    Memory m;
    if (device_->compile(spec_, kSlow, {}, &binary, &diag_) != TN_OK || device_->load(spec_, {}, binary, &kernel, &diag_) != TN_OK || device_->alloc(16, 256, false, &m, &diag_) != TN_OK) return TN_OK;
    const uint32_t params[2] = {30000000, 0};
    const Binding binding{m.handle, 0, 16};
    Dispatch d;
    d.kernel = kernel.get(), d.bindings = &binding, d.n_bindings = 1, d.params = params, d.param_bytes = sizeof params;
    std::shared_ptr<Fence> fence;
    if (stream_->dispatch(d, &diag_) != TN_OK || stream_->fence(&fence, &diag_) != TN_OK) return TN_OK;
    const tn_status s = fence->wait(0, &diag_);
    fence->wait(TN_FOREVER, nullptr);
    device_->free(m.handle);
    return s;
  }
  tn_host host_{};
  tn_diag diag_{};
  KernelSpec spec_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(OpenCl, what_the_processor_does_is_called_emulated) {
  for (const DeviceFacts& f : driver_->enumerate()) {
    EXPECT_EQ(f.emulated, f.gpu.device_class == DeviceClass::Processor);
    EXPECT_LE(f.info.mem_free_bytes, f.info.mem_total_bytes);
    EXPECT_LE(f.max_alloc_bytes, f.info.mem_total_bytes);
  }
}

TEST_F(OpenCl, a_kernel_is_compiled_loaded_from_its_binary_and_run) {
  std::string binary;
  ASSERT_EQ(device_->compile(spec_, kText, {}, &binary, &diag_), TN_OK) << diag_.msg;
  std::unique_ptr<Kernel> kernel;
  ASSERT_EQ(device_->load(spec_, {}, binary, &kernel, &diag_), TN_OK) << diag_.msg;
  Memory m;
  ASSERT_EQ(device_->alloc(400, 256, false, &m, &diag_), TN_OK);
  ASSERT_EQ(stream_->fill_zero(m.handle, 0, 400, &diag_), TN_OK);
  const uint32_t params[2] = {90, 7};
  const Binding binding{m.handle, 0, 400};
  Dispatch d;
  d.kernel = kernel.get(), d.bindings = &binding, d.n_bindings = 1, d.params = params, d.param_bytes = sizeof params;
  d.groups[0] = 2, d.group[0] = 64;
  ASSERT_EQ(stream_->dispatch(d, &diag_), TN_OK) << diag_.msg;
  uint32_t got[100] = {};
  Stream::Piece to, from;
  to.host = got, from.handle = m.handle;
  ASSERT_EQ(stream_->copy(to, from, 400, &diag_), TN_OK);
  ASSERT_EQ(finish(), TN_OK);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(got[i], i < 90 ? 7u : 0u) << i;
  device_->free(m.handle);
}

TEST_F(OpenCl, a_damaged_binary_is_refused) {
  std::string binary;
  ASSERT_EQ(device_->compile(spec_, kText, {}, &binary, &diag_), TN_OK);
  std::unique_ptr<Kernel> kernel;
  EXPECT_NE(device_->load(spec_, {}, "Bnonsense", &kernel, &diag_), TN_OK);
  EXPECT_NE(device_->load(spec_, {}, "", &kernel, &diag_), TN_OK);
}

// Of a process in which no driver can be found; before this one has started any.
tn_diag without_drivers() {
  tn_diag diag{};
  int ends[2];
  if (pipe(ends) != 0) return diag;
  if (fork() == 0) {
    setenv("OCL_ICD_VENDORS", "/nowhere/", 1);
    tn_host host{};
    std::unique_ptr<Driver> driver;
    make_driver(&host, &driver, &diag);
    _exit(write(ends[1], &diag, sizeof diag) == sizeof diag ? 0 : 1);
  }
  close(ends[1]);
  if (read(ends[0], &diag, sizeof diag) != sizeof diag) diag = {};
  close(ends[0]);
  return diag;
}
const tn_diag kWithoutDrivers = without_drivers();

// tests/errors/golden/TN-DEVICE-opencl.txt in the form of that folder; TENON_GOLDEN_UPDATE=1 writes it.
TEST_F(OpenCl, errors_say_their_golden_texts) {
  std::map<std::string, std::string> seen, golden;
  const auto said = [&](tn_status status, uint32_t id) {
    EXPECT_NE(status, TN_OK);
    EXPECT_EQ(diag_.id, id) << diag_.msg;
    EXPECT_LT(diag_.len + 1, sizeof diag_.msg) << "cut: " << diag_.msg;
    seen["TN-DEVICE-" + std::to_string(id & 0xFFFF)] = "what: " + std::string(diag_.msg) + "\n";
  };
  Api api;
  said(open_library("/nowhere/libOpenCL.so.1", &api, &diag_), kErrNoLibrary);
  diag_ = kWithoutDrivers;
  said(diag_.status, kErrNoDriver);
  said(failed(CL_INVALID_KERNEL_ARGS, "launch add", &diag_), kErrCall);
  said(failed(CL_DEVICE_NOT_AVAILABLE, "launch add", &diag_), kErrLost);
  said(failed(CL_MEM_OBJECT_ALLOCATION_FAILURE, "allocate memory", &diag_), kErrMemory);
  std::string binary;
  const tn_status compiled = device_->compile(spec_, "no kernel", {}, &binary, &diag_);
  if (char* why = std::strstr(diag_.msg, "why: ")) {  // the compiler's own words
    const std::string end = std::strstr(why, "\ntry: ");
    std::strcpy(why, ("why: LOG" + end).c_str());
    diag_.len = static_cast<uint32_t>(std::strlen(diag_.msg));
  }
  said(compiled, kErrCompile);
  std::unique_ptr<Kernel> kernel;
  ASSERT_EQ(device_->compile(spec_, kText, {}, &binary, &diag_), TN_OK);
  ASSERT_EQ(device_->load(spec_, {}, binary, &kernel, &diag_), TN_OK);
  Dispatch d;
  d.kernel = kernel.get();
  said(stream_->dispatch(d, &diag_), kErrKernel);
  struct Other final : Fence {
    tn_status wait(uint64_t, tn_diag*) override { return TN_OK; }
  };
  said(stream_->wait(std::make_shared<Other>(), &diag_), kErrOtherDevice);
  said(unfinished(), kErrNotDone);
  if (std::getenv("TENON_GOLDEN_UPDATE") != nullptr) {
    std::ofstream out(TENON_GOLDEN_DIR "/TN-DEVICE-opencl.txt");
    for (const auto& [key, text] : seen) out << "[" << key << "]\n" << text << "\n";
    return;
  }
  std::ifstream in(TENON_GOLDEN_DIR "/TN-DEVICE-opencl.txt");
  std::string line, key;
  while (std::getline(in, line)) {
    if (line.rfind("[TN-", 0) == 0) key = line.substr(1, line.size() - 2);
    else if (!line.empty()) golden[key] += line + "\n";
  }
  EXPECT_EQ(seen, golden);
}

}  // namespace
}  // namespace tenon::gpu
