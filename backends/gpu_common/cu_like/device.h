// backends/gpu_common/cu_like/device.h - driver.h's Device and Driver on CUDA and HIP.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/gpu_common/cu_like/context.h"
#include "backends/gpu_common/cu_like/flavor.h"
#include "backends/gpu_common/cu_like/library.h"
#include "backends/gpu_common/driver.h"

namespace tenon::gpu::cu_like {

// What the driver says about a device without a context of it.
struct Facts {
  int device = 0;
  std::string name, architecture, pci;
  Uuid uuid{};
  uint64_t memory_bytes = 0;
  Caps caps;
  int multiprocessors = 0, clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0, l2_bytes = 0;
  bool integrated = false, pools = false;
};
Facts read_facts(const Api&, const Flavor&, int ordinal);

class CuDevice final : public Device {
 public:
  static tn_status open(const Api&, const Flavor&, const Compiler&, const Facts&, const std::string& driver_text, std::unique_ptr<Device>* out, tn_diag*);
  ~CuDevice() override;
  const Caps& caps() const override { return facts_.caps; }
  tn_status alloc(uint64_t bytes, uint64_t align, bool host_visible, Memory* out, tn_diag*) override;
  void free(uint64_t handle) override;
  tn_status open_stream(int32_t priority, std::unique_ptr<Stream>* out, tn_diag*) override;
  tn_status compile(const KernelSpec&, const std::string& text, const RenderOptions&, std::string* binary, tn_diag*) override;
  tn_status load(const KernelSpec&, const RenderOptions&, const std::string& binary, std::unique_ptr<Kernel>* out, tn_diag*) override;
  std::string cache_key() const override;
  tn_status health(tn_diag*) override;
  uint64_t native() const override;
  uint64_t free_bytes() override;

 private:
  struct Block { uint64_t base = 0; void* host = nullptr; };
  CuDevice(const Flavor& flavor, const Compiler& compiler, const Facts& facts, const std::string& driver_text, std::shared_ptr<Context> context);
  tn_status alloc_device(uint64_t bytes, uint64_t* out, tn_diag*);
  const Flavor& flavor_;
  const Compiler& compiler_;
  const Facts facts_;
  const std::string driver_text_;
  std::shared_ptr<Context> context_;
  Handle alloc_stream_ = nullptr;  // holds nothing but allocations, so waiting for it waits for no kernel
  std::mutex mutex_;
  std::unordered_map<uint64_t, Block> blocks_;
};

class CuDriver final : public Driver {
 public:
  CuDriver(const Flavor& flavor, const Api& api) : flavor_(flavor), api_(api) {}
  // Starts the driver. errors: TN_E_UNAVAILABLE, by Flavor::start_failed or because there is no device.
  tn_status start(const std::string& library, tn_diag*);
  void set_compiler(std::unique_ptr<Compiler>);  // before enumerate()
  uint32_t native_kind() const override { return flavor_.kind; }
  std::vector<DeviceFacts> enumerate() override;
  tn_status open_device(uint32_t index, std::unique_ptr<Device>* out, tn_diag*) override;

 private:
  DeviceFacts describe(const Facts&) const;
  const Flavor& flavor_;
  const Api api_;
  std::unique_ptr<Compiler> compiler_;
  std::vector<Facts> facts_;
  std::string driver_text_;
};

}  // namespace tenon::gpu::cu_like
