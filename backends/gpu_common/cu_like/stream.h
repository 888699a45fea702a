// backends/gpu_common/cu_like/stream.h - fences, kernels and streams on CUDA and HIP.
#pragma once
#include <memory>
#include <vector>

#include "backends/gpu_common/cu_like/context.h"
#include "backends/gpu_common/driver.h"

namespace tenon::gpu::cu_like {

// An event recorded in a stream.
class EventFence final : public Fence {
 public:
  EventFence(std::shared_ptr<Context> context, Handle event) : context_(std::move(context)), event_(event) {}
  ~EventFence() override { context_->give_event(event_); }
  tn_status wait(uint64_t timeout_ns, tn_diag*) override;
  const Context* context() const { return context_.get(); }
  Handle event() const { return event_; }

 private:
  const std::shared_ptr<Context> context_;
  const Handle event_;
};

class LoadedKernel final : public Kernel {
 public:
  static tn_status load(std::shared_ptr<Context>, const KernelSpec&, const RenderOptions&, const std::string& binary, std::unique_ptr<Kernel>* out, tn_diag*);
  ~LoadedKernel() override;

  std::string name;
  Handle function = nullptr;
  uint32_t n_buffers = 0, param_bytes = 0;
  bool can_fail = false, params_in_buffer = false;

 private:
  explicit LoadedKernel(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  std::shared_ptr<Context> context_;
  Handle module_ = nullptr;
};

// Parameter blocks too large for by-value passing, in pinned memory that kernels read in place. A full slab is used again
// when the launches that read it have finished.
class ParamSlabs {
 public:
  explicit ParamSlabs(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~ParamSlabs();  // after the stream's work
  // Copies the block; *out is the device's address of it, for launches on `stream` only.
  tn_status put(const void* params, uint32_t bytes, Handle stream, uint64_t* out, tn_diag*);

 private:
  struct Slab { void* host = nullptr; uint64_t device = 0; uint32_t bytes = 0, used = 0; Handle done = nullptr; };
  tn_status make(uint32_t bytes, Slab* out, tn_diag*);
  tn_status next(uint32_t bytes, Handle stream, tn_diag*);
  std::shared_ptr<Context> context_;
  std::vector<Slab> slabs_;  // the last one is being filled
};

class EventStream final : public Stream {
 public:
  static tn_status open(std::shared_ptr<Context>, int32_t priority, std::unique_ptr<Stream>* out, tn_diag*);
  ~EventStream() override;
  tn_status copy(const Piece& dst, const Piece& src, uint64_t bytes, tn_diag*) override;
  tn_status fill_zero(uint64_t handle, uint64_t offset, uint64_t bytes, tn_diag*) override;
  tn_status dispatch(const Dispatch&, tn_diag*) override;
  tn_status fence(std::shared_ptr<Fence>* out, tn_diag*) override;
  tn_status wait(const std::shared_ptr<Fence>&, tn_diag*) override;
  uint64_t native() const override { return reinterpret_cast<uint64_t>(stream_); }

 private:
  EventStream(std::shared_ptr<Context> context, Handle stream) : context_(context), stream_(stream), slabs_(std::make_unique<ParamSlabs>(context)) {}
  const std::shared_ptr<Context> context_;
  const Handle stream_;
  std::unique_ptr<ParamSlabs> slabs_;
};

}  // namespace tenon::gpu::cu_like
