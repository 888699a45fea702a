// tests/vulkan/fixture.h - a driver with the validation layer, a device, and shorthands. Each test fails on any message
// that the layer sent during it.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/gpu_common/driver.h"

namespace tenon::vulkan::test {

using Config = std::map<std::string, std::string>;

// A host that keeps what is logged.
class Host {
 public:
  explicit Host(Config config);
  const tn_host* get() const { return &table_; }
  std::vector<std::string> take_log();
  std::vector<std::string> take_validation();  // the layer's messages among the log, which is emptied

 private:
  tn_host table_{};
  Config config_;
  std::mutex mutex_;
  std::vector<std::string> log_;
};

// Driver and device with a configuration of one's own. `why` tells why there is none.
struct Rig {
  explicit Rig(Config config = {{"vulkan.validation", "2"}});
  ~Rig();
  Host host;
  std::unique_ptr<gpu::Driver> driver;
  std::vector<gpu::DeviceFacts> facts;
  std::unique_ptr<gpu::Device> device;
  std::string why;
};

class VulkanTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();
  void SetUp() override;
  void TearDown() override;

  static gpu::Device& device() { return *rig->device; }
  static std::unique_ptr<gpu::Stream> stream(int priority = 0);
  static gpu::Memory alloc(uint64_t bytes, bool host_visible = false);
  static std::unique_ptr<gpu::Kernel> kernel(const gpu::KernelSpec&, const std::string& text, gpu::RenderOptions = {gpu::Dialect::Glsl, false});
  static void finish(gpu::Stream&);
  static void put(gpu::Stream&, const gpu::Memory&, const void* from, uint64_t bytes, uint64_t offset = 0);
  static void get(gpu::Stream&, void* to, const gpu::Memory&, uint64_t bytes, uint64_t offset = 0);  // enqueues
  static Rig* rig;
};

// y[i] = y[i] * a + b over `n` u32, one element a thread, 64 a group. Push constants, or the parameter buffer.
gpu::KernelSpec affine_spec();
std::string affine_text(bool params_in_buffer);
struct AffineParams { uint32_t n, a, b, pad; };
// Launches it over the first `n` words of `memory`.
void launch_affine(gpu::Stream&, const gpu::Kernel&, const gpu::Memory&, AffineParams);

}  // namespace tenon::vulkan::test
