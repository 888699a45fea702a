// backends/opencl/device.h - driver.h's classes on OpenCL: a context per opened device, an in-order command queue per stream.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "backends/opencl/facts.h"

namespace tenon::gpu::opencl {

// Lives as long as its last stream, fence or kernel.
struct Context {
  const Api& api;
  const DeviceOf& of;
  cl_context context = nullptr;
  std::atomic<bool> lost{false};
  Context(const Api& a, const DeviceOf& d) : api(a), of(d) {}
  ~Context() { if (context != nullptr) api.clReleaseContext(context); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  tn_status check(cl_int code, const char* what, tn_diag*);  // TN_OK for CL_SUCCESS; remembers a loss
};

class EventFence final : public Fence {
 public:
  EventFence(std::shared_ptr<Context> context, cl_event event) : context_(std::move(context)), event_(event) {}
  ~EventFence() override { context_->api.clReleaseEvent(event_); }
  tn_status wait(uint64_t timeout_ns, tn_diag*) override;
  const Context* context() const { return context_.get(); }
  cl_event event() const { return event_; }

 private:
  const std::shared_ptr<Context> context_;
  const cl_event event_;
};

// Arguments belong to the cl_kernel, so a launch holds it alone from the first argument to the enqueue.
class ClKernel final : public Kernel {
 public:
  explicit ClKernel(std::shared_ptr<Context> c) : context(std::move(c)) {}
  ~ClKernel() override;
  const std::shared_ptr<Context> context;
  std::string name;
  cl_program program = nullptr;
  cl_kernel kernel = nullptr;
  uint32_t n_buffers = 0, param_bytes = 0;
  bool can_fail = false, params_in_buffer = false;
  mutable std::mutex mutex;
};

class ClStream final : public Stream {
 public:
  ClStream(std::shared_ptr<Context> context, cl_command_queue queue) : context_(std::move(context)), queue_(queue) {}
  ~ClStream() override;
  tn_status copy(const Piece& dst, const Piece& src, uint64_t bytes, tn_diag*) override;
  tn_status fill_zero(uint64_t handle, uint64_t offset, uint64_t bytes, tn_diag*) override;
  tn_status dispatch(const Dispatch&, tn_diag*) override;
  tn_status fence(std::shared_ptr<Fence>* out, tn_diag*) override;
  tn_status wait(const std::shared_ptr<Fence>& fence, tn_diag*) override;
  uint64_t native() const override { return reinterpret_cast<uintptr_t>(queue_); }

 private:
  tn_status copy_overlapping(cl_mem buffer, uint64_t dst, uint64_t src, uint64_t bytes, tn_diag*);
  const std::shared_ptr<Context> context_;
  const cl_command_queue queue_;
};

class ClDevice final : public Device {
 public:
  static tn_status open(const Api&, const DeviceOf&, std::unique_ptr<Device>* out, tn_diag*);
  ~ClDevice() override;
  const Caps& caps() const override { return context_->of.facts.gpu; }
  tn_status alloc(uint64_t bytes, uint64_t align, bool host_visible, Memory* out, tn_diag*) override;
  void free(uint64_t handle) override;
  tn_status open_stream(int32_t priority, std::unique_ptr<Stream>* out, tn_diag*) override;
  tn_status compile(const KernelSpec&, const std::string& text, const RenderOptions&, std::string* binary, tn_diag*) override;
  tn_status load(const KernelSpec&, const RenderOptions&, const std::string& binary, std::unique_ptr<Kernel>* out, tn_diag*) override;
  std::string cache_key() const override { return context_->of.cache_key; }
  tn_status health(tn_diag*) override;
  uint64_t native() const override { return reinterpret_cast<uintptr_t>(context_->of.device); }
  uint64_t free_bytes() override;

 private:
  explicit ClDevice(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  tn_status build(cl_program program, const KernelSpec&, tn_diag*);
  const std::shared_ptr<Context> context_;
  cl_command_queue memory_queue_ = nullptr;  // holds nothing but moves of new buffers
  std::mutex mutex_;
  std::unordered_map<uint64_t, uint64_t> bytes_;  // of each buffer
  uint64_t used_ = 0;
};

}  // namespace tenon::gpu::opencl
