// backends/vulkan/driver.cpp - the classes of backends/gpu_common/driver.h for Vulkan.
#include "backends/gpu_common/driver.h"

#include <cstdio>

#include "backends/vulkan/compiler.h"
#include "backends/vulkan/status.h"
#include "backends/vulkan/stream.h"

namespace tenon::vulkan {
namespace {

class Device final : public gpu::Device {
 public:
  Device(std::shared_ptr<Gpu> gpu, std::shared_ptr<const Compiler> compiler) : gpu_(std::move(gpu)), compiler_(std::move(compiler)) {}

  const gpu::Caps& caps() const override { return gpu_->physical.caps; }
  tn_status alloc(uint64_t bytes, uint64_t align, bool host_visible, gpu::Memory* out, tn_diag* diag) override {
    if (tn_status s = gpu_->alive(diag); s != TN_OK) return s;
    Block* block = nullptr;
    if (tn_status s = gpu_->memory->alloc(bytes, align, host_visible ? MemoryKind::Host : MemoryKind::Device, &block, diag); s != TN_OK) return s;
    *out = {reinterpret_cast<uint64_t>(block), 0, block->host};
    return TN_OK;
  }
  void free(uint64_t handle) override { gpu_->memory->free(reinterpret_cast<Block*>(handle)); }
  tn_status open_stream(int32_t priority, std::unique_ptr<gpu::Stream>* out, tn_diag* diag) override { return Stream::open(gpu_, priority, out, diag); }
  tn_status compile(const gpu::KernelSpec& spec, const std::string& text, const gpu::RenderOptions&, std::string* binary, tn_diag* diag) override {
    return compiler_->compile(spec.name, text, binary, diag);
  }
  tn_status load(const gpu::KernelSpec& spec, const gpu::RenderOptions& options, const std::string& binary, std::unique_ptr<gpu::Kernel>* out, tn_diag* diag) override {
    return Pipeline::make(gpu_, spec, options, binary, out, diag);
  }
  std::string cache_key() const override;
  tn_status health(tn_diag* diag) override { return gpu_->alive(diag); }
  uint64_t native() const override { return reinterpret_cast<uint64_t>(gpu_->device); }
  uint64_t native_memory(uint64_t handle) const override { return reinterpret_cast<uint64_t>(reinterpret_cast<const Block*>(handle)->buffer); }
  uint64_t free_bytes() override { return budget_bytes(gpu_->instance->fn, gpu_->physical); }

 private:
  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<const Compiler> compiler_;
};

// SPIR-V depends on the compiler alone; the device stands in the key since what load() makes of it may be kept with it.
std::string Device::cache_key() const {
  const Physical& p = gpu_->physical;
  std::string key = Compiler::version() + " vulkan1.2 spv1.5|" + p.facts.info.name + "|" + p.facts.info.driver + "|";
  for (const uint8_t byte : p.cache_uuid) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", byte);
    key += hex;
  }
  return key;
}

class Driver final : public gpu::Driver {
 public:
  explicit Driver(std::shared_ptr<Instance> instance) : instance_(std::move(instance)), compiler_(std::make_shared<Compiler>()) {}
  uint32_t native_kind() const override { return TN_KIND_VULKAN; }
  std::vector<gpu::DeviceFacts> enumerate() override {
    std::vector<std::string> refused;
    devices_ = find_devices(instance_->fn, instance_->handle, &refused);
    for (const std::string& why : refused) instance_->log(TN_LOG_INFO, "left out: " + why);
    std::vector<gpu::DeviceFacts> facts;
    for (const Physical& d : devices_) facts.push_back(d.facts);
    return facts;
  }
  tn_status open_device(uint32_t index, std::unique_ptr<gpu::Device>* out, tn_diag* diag) override {
    if (index >= devices_.size())
      return fail(diag, TN_E_NOT_FOUND, kErrNoSuchDevice, VK_SUCCESS, "vulkan: no device vulkan:%u\nwhy: there are %zu\ntry: tenon devices", index, devices_.size());
    std::shared_ptr<Gpu> gpu;
    if (tn_status s = Gpu::open(instance_, devices_[index], &gpu, diag); s != TN_OK) return s;
    *out = std::make_unique<Device>(std::move(gpu), compiler_);
    return TN_OK;
  }

 private:
  std::shared_ptr<Instance> instance_;
  std::shared_ptr<const Compiler> compiler_;
  std::vector<Physical> devices_;
};

}  // namespace
}  // namespace tenon::vulkan

namespace tenon::gpu {

tn_status make_driver(const tn_host* host, std::unique_ptr<Driver>* out, tn_diag* diag) {
  vulkan::Settings settings;
  if (tn_status s = vulkan::read_settings(host, &settings, diag); s != TN_OK) return s;
  std::shared_ptr<vulkan::Instance> instance;
  if (tn_status s = vulkan::Instance::make(host, settings, &instance, diag); s != TN_OK) return s;
  *out = std::make_unique<vulkan::Driver>(std::move(instance));
  return TN_OK;
}

const char* driver_name() { return "vulkan"; }

}  // namespace tenon::gpu
