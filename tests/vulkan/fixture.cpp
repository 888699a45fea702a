// tests/vulkan/fixture.cpp - see fixture.h.
#include "tests/vulkan/fixture.h"

namespace tenon::vulkan::test {

Rig* VulkanTest::rig = nullptr;

Host::Host(Config config) : config_(std::move(config)) {
  table_.size = sizeof table_, table_.abi = TN_ABI_CURRENT, table_.ctx = this;
  table_.log = [](void* ctx, uint32_t, const char* msg, uint32_t len) {
    auto* self = static_cast<Host*>(ctx);
    const std::lock_guard lock(self->mutex_);
    self->log_.emplace_back(msg, len);
  };
  table_.config = [](void* ctx, const char* key) -> const char* {
    const auto& config = static_cast<Host*>(ctx)->config_;
    const auto it = config.find(key);
    return it == config.end() ? nullptr : it->second.c_str();
  };
}

std::vector<std::string> Host::take_log() {
  const std::lock_guard lock(mutex_);
  return std::move(log_);
}

std::vector<std::string> Host::take_validation() {
  std::vector<std::string> found;
  for (std::string& line : take_log())
    if (line.find("validation: ") != std::string::npos) found.push_back(std::move(line));
  return found;
}

Rig::Rig(Config config) : host(std::move(config)) {
  tn_diag diag{};
  if (gpu::make_driver(host.get(), &driver, &diag) != TN_OK) {
    why = diag.msg;
    return;
  }
  facts = driver->enumerate();
  if (facts.empty()) {
    why = "no device";
    return;
  }
  if (driver->open_device(0, &device, &diag) != TN_OK) why = diag.msg;
}

Rig::~Rig() {
  device.reset();
  driver.reset();
  for (const std::string& line : host.take_validation()) ADD_FAILURE() << line;
}

void VulkanTest::SetUpTestSuite() { rig = new Rig; }
void VulkanTest::TearDownTestSuite() {
  delete rig;
  rig = nullptr;
}
void VulkanTest::SetUp() {
  if (rig->device == nullptr) GTEST_SKIP() << rig->why;
}
void VulkanTest::TearDown() {
  for (const std::string& line : rig->host.take_validation()) ADD_FAILURE() << line;
}

std::unique_ptr<gpu::Stream> VulkanTest::stream(int priority) {
  std::unique_ptr<gpu::Stream> s;
  tn_diag diag{};
  EXPECT_EQ(device().open_stream(priority, &s, &diag), TN_OK) << diag.msg;
  return s;
}

gpu::Memory VulkanTest::alloc(uint64_t bytes, bool host_visible) {
  gpu::Memory m;
  tn_diag diag{};
  EXPECT_EQ(device().alloc(bytes, 256, host_visible, &m, &diag), TN_OK) << diag.msg;
  return m;
}

std::unique_ptr<gpu::Kernel> VulkanTest::kernel(const gpu::KernelSpec& spec, const std::string& text, gpu::RenderOptions options) {
  std::string binary;
  std::unique_ptr<gpu::Kernel> k;
  tn_diag diag{};
  EXPECT_EQ(device().compile(spec, text, options, &binary, &diag), TN_OK) << diag.msg;
  EXPECT_EQ(device().load(spec, options, binary, &k, &diag), TN_OK) << diag.msg;
  return k;
}

void VulkanTest::finish(gpu::Stream& s) {
  std::shared_ptr<gpu::Fence> fence;
  tn_diag diag{};
  ASSERT_EQ(s.fence(&fence, &diag), TN_OK) << diag.msg;
  ASSERT_EQ(fence->wait(TN_FOREVER, &diag), TN_OK) << diag.msg;
}

void VulkanTest::put(gpu::Stream& s, const gpu::Memory& to, const void* from, uint64_t bytes, uint64_t offset) {
  tn_diag diag{};
  ASSERT_EQ(s.copy({to.handle, offset, nullptr}, {0, 0, const_cast<void*>(from)}, bytes, &diag), TN_OK) << diag.msg;
}

void VulkanTest::get(gpu::Stream& s, void* to, const gpu::Memory& from, uint64_t bytes, uint64_t offset) {
  tn_diag diag{};
  ASSERT_EQ(s.copy({0, 0, to}, {from.handle, offset, nullptr}, bytes, &diag), TN_OK) << diag.msg;
}

gpu::KernelSpec affine_spec() {
  gpu::KernelSpec spec;
  spec.name = "affine";
  spec.buffers = {{"y", TN_U32, true}};
  spec.scalars = {{"n", TN_U32}, {"a", TN_U32}, {"b", TN_U32}};
  return spec;
}

std::string affine_text(bool params_in_buffer) {
  const std::string block = params_in_buffer ? "layout(std430, set = 0, binding = 1) readonly buffer P { uint n, a, b; };\n" : "layout(push_constant) uniform P { uint n, a, b; };\n";
  return "#version 450\nlayout(local_size_x = 64) in;\nlayout(std430, set = 0, binding = 0) buffer Y { uint y[]; };\n" + block +
         "void main() {\n  uint i = gl_GlobalInvocationID.x;\n  if (i < n) y[i] = y[i] * a + b;\n}\n";
}

void launch_affine(gpu::Stream& s, const gpu::Kernel& kernel, const gpu::Memory& memory, AffineParams params) {
  const gpu::Binding binding{memory.handle, 0, uint64_t{params.n} * 4};
  gpu::Dispatch d;
  d.kernel = &kernel, d.bindings = &binding, d.n_bindings = 1;
  d.params = &params, d.param_bytes = sizeof params;
  d.groups[0] = (params.n + 63) / 64, d.group[0] = 64;
  tn_diag diag{};
  ASSERT_EQ(s.dispatch(d, &diag), TN_OK) << diag.msg;
}

}  // namespace tenon::vulkan::test

// Drivers and layers leave memory behind when they are unloaded. Kept mapped, they are known by name to the leak checker.
#if defined(__SANITIZE_ADDRESS__)
#include <dlfcn.h>
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
  return "leak:libvulkan.so\nleak:libvulkan_\nleak:libVkLayer_\nleak:libLLVM\n";
}
namespace {
const bool kept_mapped = [] {
  for (const char* name : {"libvulkan_lvp.so", "libvulkan_intel.so", "libvulkan_intel_hasvk.so", "libvulkan_radeon.so", "libVkLayer_khronos_validation.so", "libVkLayer_MESA_device_select.so"})
    dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  return true;
}();
}  // namespace
#endif
