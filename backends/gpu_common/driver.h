// backends/gpu_common/driver.h - what one GPU API must be able to do. plugin.h of this folder makes a whole Tenon plugin of it:
// devices, memory, queues, timelines, kernels, caches. A backend writes these classes and nothing of the ABI.
//
// Nothing here throws across the ABI; gpu_common catches. Errors: a tn_status and a filled tn_diag. A driver that says its
// device is gone returns TN_E_DEVICE_LOST from then on.
#pragma once
#include <tenon/plugin.h>

#include <memory>
#include <string>
#include <vector>

#include "ops/gpu/caps.h"
#include "ops/gpu/render.h"

namespace tenon::gpu {

// A point in a stream's work. Threads: any.
class Fence {
 public:
  virtual ~Fence() = default;
  // TN_OK when all work before it has finished; TN_E_TIMEOUT when not within timeout_ns (0 = just look, TN_FOREVER);
  // another error when the work failed.
  virtual tn_status wait(uint64_t timeout_ns, tn_diag*) = 0;
};

// A compiled kernel, ready to launch on its device. Threads: any, launches do not change it.
class Kernel {
 public:
  virtual ~Kernel() = default;
};

// Bindings of one kernel at most, parameter buffer and error word included: no backend states more in Caps::max_bindings, since
// launches gather them on the stack.
inline constexpr uint32_t kMostBindings = 64;

// A buffer bound to a kernel: `bytes` bytes of the memory block `handle` from `offset` on, offset a multiple of
// Caps::binding_align (or 0).
struct Binding { uint64_t handle = 0, offset = 0, bytes = 0; };

struct Dispatch {
  const Kernel* kernel = nullptr;
  const Binding* bindings = nullptr;   // spec's buffers, error word last if the kernel can fail; the parameter
  uint32_t n_bindings = 0;             // buffer, where the kernel has one, is the stream's own affair
  const void* params = nullptr;        // copied before return
  uint32_t param_bytes = 0;
  uint32_t groups[3] = {1, 1, 1}, group[3] = {1, 1, 1};
};

// In-order work of one device. Threads: one at a time. All functions enqueue and return; none waits for the device.
class Stream {
 public:
  virtual ~Stream() = default;  // after all its work has finished
  // Ranges of memory blocks, or host memory (handle 0, address in `host`), which stays valid until the work has finished;
  // gpu_common never asks for host to host.
  struct Piece { uint64_t handle = 0, offset = 0; void* host = nullptr; };
  virtual tn_status copy(const Piece& dst, const Piece& src, uint64_t bytes, tn_diag*) = 0;
  virtual tn_status fill_zero(uint64_t handle, uint64_t offset, uint64_t bytes, tn_diag*) = 0;  // multiples of 4
  virtual tn_status dispatch(const Dispatch&, tn_diag*) = 0;
  // A fence after everything enqueued so far, which is thereby handed to the device (flushed).
  virtual tn_status fence(std::shared_ptr<Fence>* out, tn_diag*) = 0;
  // Later work of this stream runs after `fence`, of any stream of the same device. Fences of other devices: TN_E_UNSUPPORTED is
  // allowed, gpu_common then waits on the host.
  virtual tn_status wait(const std::shared_ptr<Fence>& fence, tn_diag*) = 0;
  virtual uint64_t native() const { return 0; }  // CUstream, hipStream_t, cl_command_queue, VkQueue
};

struct Memory { uint64_t handle = 0, dev_addr = 0; void* host = nullptr; };  // host: permanently mapped, or NULL

// One opened device. Threads: any.
class Device {
 public:
  virtual ~Device() = default;
  virtual const Caps& caps() const = 0;
  virtual tn_status alloc(uint64_t bytes, uint64_t align, bool host_visible, Memory* out, tn_diag*) = 0;
  virtual void free(uint64_t handle) = 0;
  virtual tn_status open_stream(int32_t priority, std::unique_ptr<Stream>* out, tn_diag*) = 0;
  // Text to a device program (a binary that load() takes). blocks: may take seconds; several threads at once. `spec` is what
  // the text was rendered from. errors: TN_E_FAILED with the compiler's first lines.
  virtual tn_status compile(const KernelSpec& spec, const std::string& text, const RenderOptions&, std::string* binary, tn_diag*) = 0;
  virtual tn_status load(const KernelSpec& spec, const RenderOptions&, const std::string& binary, std::unique_ptr<Kernel>* out, tn_diag*) = 0;
  // All that a binary depends on beside text and options: compiler and driver name and version, device name or architecture.
  virtual std::string cache_key() const = 0;
  // "the device is gone": TN_E_DEVICE_LOST with the driver's words, else TN_OK.
  virtual tn_status health(tn_diag*) = 0;
  virtual uint64_t native() const { return 0; }             // CUcontext, hipDevice_t, cl_device_id, VkDevice
  virtual uint64_t native_memory(uint64_t handle) const { return handle; }  // cl_mem, CUdeviceptr, VkBuffer
  virtual uint64_t free_bytes() { return 0; }  // of device memory now; 0 = the driver does not say
};

struct DeviceFacts {
  // As the ABI wants it; size, next and index are filled by gpu_common. n_spaces: 2 where alloc() can give host-visible memory
  // (the second space), else 1 or 0.
  tn_device_info info{};
  std::vector<tn_cap> caps;          // typed capabilities with provenance; texts live as long as the Driver
  Caps gpu;                          // what Device::caps() will say. storage 0: not known yet, the device is opened to ask
  uint64_t max_alloc_bytes = 0;      // largest single allocation; 0 = all memory
  bool emulated = false;
};

// One API in one process. Made by the backend's make_driver(); destroyed at close, after all devices.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual uint32_t native_kind() const = 0;                  // TN_KIND_*
  virtual std::vector<DeviceFacts> enumerate() = 0;          // once; must not start slow parts of the driver
  virtual tn_status open_device(uint32_t index, std::unique_ptr<Device>* out, tn_diag*) = 0;
};

// The backend's one entry: opens the driver's library. `host` for log and config; keys are "NAME.key". TN_E_UNAVAILABLE names the
// library or device that is absent and what to install.
tn_status make_driver(const tn_host* host, std::unique_ptr<Driver>* out, tn_diag*);
// "opencl": the plugin's short name, used in kernel names, configuration keys and messages.
const char* driver_name();

}  // namespace tenon::gpu
