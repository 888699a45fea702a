#include <algorithm>
#include <chrono>
#include <thread>

#include "backends/opencl/device.h"

namespace tenon::gpu::opencl {
namespace {

cl_mem memory(uint64_t handle) { return reinterpret_cast<cl_mem>(static_cast<uintptr_t>(handle)); }

}  // namespace

tn_status Context::check(cl_int code, const char* what, tn_diag* diag) {
  if (code == CL_SUCCESS) return TN_OK;
  const tn_status s = failed(code, what, diag);
  if (s == TN_E_DEVICE_LOST) lost.store(true);
  return s;
}

// OpenCL can wait for ever or look: what lies between is looking, less often as time passes.
tn_status EventFence::wait(uint64_t timeout_ns, tn_diag* diag) {
  using Clock = std::chrono::steady_clock;
  const Api& api = context_->api;
  if (timeout_ns == TN_FOREVER) api.clWaitForEvents(1, &event_);  // what it says of failures is less than the event's own status
  const auto start = Clock::now();
  for (auto nap = std::chrono::microseconds(5);; nap = std::min(nap * 2, std::chrono::microseconds(500))) {
    cl_int state = CL_COMPLETE;
    if (tn_status s = context_->check(api.clGetEventInfo(event_, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr), "ask for the state of work", diag); s != TN_OK) return s;
    if (state < 0) return context_->check(state, "work of the queue", diag);
    if (state == CL_COMPLETE) return TN_OK;
    if (Clock::now() - start >= std::chrono::nanoseconds(std::min<uint64_t>(timeout_ns, uint64_t{1} << 62)))
      return report(diag, TN_E_TIMEOUT, kErrNotDone, "opencl: work is not finished\nwhy: %llu ns passed\ntry: wait longer, or give the device less work at a time", static_cast<unsigned long long>(timeout_ns));
    std::this_thread::sleep_for(nap);
  }
}

ClKernel::~ClKernel() {
  if (kernel != nullptr) context->api.clReleaseKernel(kernel);
  if (program != nullptr) context->api.clReleaseProgram(program);
}

ClStream::~ClStream() {
  context_->api.clFinish(queue_);
  context_->api.clReleaseCommandQueue(queue_);
}

// Between overlapping pieces of one buffer OpenCL refuses to copy.
tn_status ClStream::copy_overlapping(cl_mem buffer, uint64_t dst, uint64_t src, uint64_t bytes, tn_diag* diag) {
  const Api& api = context_->api;
  cl_int code = CL_SUCCESS;
  const cl_mem between = api.clCreateBuffer(context_->context, CL_MEM_READ_WRITE, bytes, nullptr, &code);
  if (code == CL_SUCCESS) code = api.clEnqueueCopyBuffer(queue_, buffer, between, src, 0, bytes, 0, nullptr, nullptr);
  if (code == CL_SUCCESS) code = api.clEnqueueCopyBuffer(queue_, between, buffer, 0, dst, bytes, 0, nullptr, nullptr);
  if (between != nullptr) api.clReleaseMemObject(between);  // goes when the copies are done
  return context_->check(code, "copy on the device", diag);
}

tn_status ClStream::copy(const Piece& dst, const Piece& src, uint64_t bytes, tn_diag* diag) {
  if (bytes == 0) return TN_OK;
  const Api& api = context_->api;
  if (src.handle == 0) return context_->check(api.clEnqueueWriteBuffer(queue_, memory(dst.handle), CL_FALSE, dst.offset, bytes, src.host, 0, nullptr, nullptr), "copy to the device", diag);
  if (dst.handle == 0) return context_->check(api.clEnqueueReadBuffer(queue_, memory(src.handle), CL_FALSE, src.offset, bytes, dst.host, 0, nullptr, nullptr), "copy to the host", diag);
  if (dst.handle == src.handle && dst.offset == src.offset) return TN_OK;
  if (dst.handle == src.handle && std::max(dst.offset, src.offset) - std::min(dst.offset, src.offset) < bytes) return copy_overlapping(memory(dst.handle), dst.offset, src.offset, bytes, diag);
  return context_->check(api.clEnqueueCopyBuffer(queue_, memory(src.handle), memory(dst.handle), src.offset, dst.offset, bytes, 0, nullptr, nullptr), "copy on the device", diag);
}

tn_status ClStream::fill_zero(uint64_t handle, uint64_t offset, uint64_t bytes, tn_diag* diag) {
  if (bytes == 0) return TN_OK;
  const cl_uint zero = 0;
  return context_->check(context_->api.clEnqueueFillBuffer(queue_, memory(handle), &zero, sizeof zero, offset, bytes, 0, nullptr, nullptr), "fill memory with zeros", diag);
}

tn_status ClStream::dispatch(const Dispatch& d, tn_diag* diag) {
  const auto& k = *static_cast<const ClKernel*>(d.kernel);
  const Api& api = context_->api;
  if (d.n_bindings != k.n_buffers + (k.can_fail ? 1u : 0u) || d.param_bytes != k.param_bytes)
    return report(diag, TN_E_ARG, kErrKernel, "opencl: launch of %.60s: arguments do not fit\nwhy: %u buffers and %u parameter bytes given, %u and %u declared\ntry: pass what the kernel declares",
                k.name.c_str(), d.n_bindings, d.param_bytes, k.n_buffers + (k.can_fail ? 1u : 0u), k.param_bytes);
  cl_int code = CL_SUCCESS;
  cl_mem block = nullptr;
  cl_uint n = 0;
  const std::lock_guard lock(k.mutex);
  const auto pass = [&](size_t bytes, const void* value) {
    if (code == CL_SUCCESS) code = api.clSetKernelArg(k.kernel, n++, bytes, value);
  };
  const auto pass_buffer = [&](uint64_t handle) {
    const cl_mem m = memory(handle);
    pass(sizeof m, &m);
  };
  for (uint32_t i = 0; i < k.n_buffers; ++i) pass_buffer(d.bindings[i].handle);
  if (k.params_in_buffer && d.param_bytes != 0 && code == CL_SUCCESS) {
    block = api.clCreateBuffer(context_->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, d.param_bytes, const_cast<void*>(d.params), &code);
    pass(sizeof block, &block);
  }
  if (k.can_fail) pass_buffer(d.bindings[k.n_buffers].handle);
  if (!k.params_in_buffer && d.param_bytes != 0) pass(d.param_bytes, d.params);
  const size_t local[3] = {d.group[0], d.group[1], d.group[2]};
  const size_t global[3] = {local[0] * d.groups[0], local[1] * d.groups[1], local[2] * d.groups[2]};
  const cl_uint dims = global[2] > 1 ? 3 : global[1] > 1 ? 2 : 1;
  if (code == CL_SUCCESS) code = api.clEnqueueNDRangeKernel(queue_, k.kernel, dims, nullptr, global, local, 0, nullptr, nullptr);
  if (block != nullptr) api.clReleaseMemObject(block);  // goes when the launch is done
  return code == CL_SUCCESS ? tn_status{TN_OK} : context_->check(code, ("launch " + k.name).c_str(), diag);
}

tn_status ClStream::fence(std::shared_ptr<Fence>* out, tn_diag* diag) {
  cl_event event = nullptr;
  if (tn_status s = context_->check(context_->api.clEnqueueMarkerWithWaitList(queue_, 0, nullptr, &event), "mark a point of the queue", diag); s != TN_OK) return s;
  auto made = std::make_shared<EventFence>(context_, event);
  if (tn_status s = context_->check(context_->api.clFlush(queue_), "flush the queue", diag); s != TN_OK) return s;
  *out = std::move(made);
  return TN_OK;
}

tn_status ClStream::wait(const std::shared_ptr<Fence>& fence, tn_diag* diag) {
  const auto* point = dynamic_cast<const EventFence*>(fence.get());
  if (point == nullptr || point->context() != context_.get())
    return report(diag, TN_E_UNSUPPORTED, kErrOtherDevice, "opencl: a queue cannot wait for this point\nwhy: it belongs to another device\ntry: wait for it on the host");
  const cl_event event = point->event();
  return context_->check(context_->api.clEnqueueBarrierWithWaitList(queue_, 1, &event, nullptr), "wait for another queue", diag);
}

}  // namespace tenon::gpu::opencl
