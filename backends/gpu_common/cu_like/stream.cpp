#include "backends/gpu_common/cu_like/stream.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace tenon::gpu::cu_like {
namespace {

constexpr uint32_t kSlabBytes = 64 * 1024, kParamAlign = 256;
constexpr uint32_t kMostArguments = 80;  // buffers, error word, parameter buffer, parameter block

tn_status not_done(const Context& c, uint64_t timeout_ns, tn_diag* diag) {
  return report(diag, TN_E_TIMEOUT, kErrNotDone, "%s:%d: work is not finished\nwhy: %llu ns passed\ntry: wait longer, or give the device less work at a time", c.plugin, c.device,
              static_cast<unsigned long long>(timeout_ns));
}

}  // namespace

tn_status EventFence::wait(uint64_t timeout_ns, tn_diag* diag) {
  using Clock = std::chrono::steady_clock;
  if (tn_status s = context_->alive(diag); s != TN_OK) return s;
  Current current(*context_);
  const Api& api = context_->api;
  const auto start = Clock::now();
  // Short work is over before a sleeping thread would wake; later looks are further apart, at most 0.2 ms.
  constexpr auto kBusy = std::chrono::microseconds(30), kMostNap = std::chrono::microseconds(200);
  auto nap = std::chrono::microseconds(1);
  for (;;) {
    const int code = api.event_query(event_);
    if (code != kNotReady) return context_->check(code, "wait for its work", diag);
    const auto passed = Clock::now() - start;
    if (passed >= std::chrono::nanoseconds(std::min<uint64_t>(timeout_ns, uint64_t{1} << 62))) return not_done(*context_, timeout_ns, diag);
    if (passed < kBusy) continue;
    if (timeout_ns == TN_FOREVER) return context_->check(api.event_sync(event_), "wait for its work", diag);
    std::this_thread::sleep_for(nap);
    nap = std::min(nap * 2, kMostNap);
  }
}

tn_status LoadedKernel::load(std::shared_ptr<Context> context, const KernelSpec& spec, const RenderOptions& options, const std::string& binary, std::unique_ptr<Kernel>* out,
                             tn_diag* diag) {
  if (tn_status s = context->alive(diag); s != TN_OK) return s;
  Current current(*context);
  std::unique_ptr<LoadedKernel> kernel(new LoadedKernel(context));
  const Api& api = context->api;
  const std::string what = "load kernel " + spec.name;
  if (tn_status s = context->check(api.module_load(&kernel->module_, binary.data()), what.c_str(), diag); s != TN_OK) return s;
  if (tn_status s = context->check(api.module_function(&kernel->function, kernel->module_, spec.name.c_str()), what.c_str(), diag); s != TN_OK) return s;
  kernel->name = spec.name;
  kernel->n_buffers = static_cast<uint32_t>(spec.buffers.size());
  kernel->can_fail = spec.can_fail;
  kernel->param_bytes = param_layout(spec).bytes;
  kernel->params_in_buffer = options.params_in_buffer && kernel->param_bytes != 0;
  *out = std::move(kernel);
  return TN_OK;
}

LoadedKernel::~LoadedKernel() {
  if (module_ == nullptr) return;
  Current current(*context_);
  context_->api.module_unload(module_);
}

ParamSlabs::~ParamSlabs() {
  for (Slab& slab : slabs_) {
    context_->api.host_free(slab.host);
    if (slab.done != nullptr) context_->give_event(slab.done);
  }
}

tn_status ParamSlabs::make(uint32_t bytes, Slab* out, tn_diag* diag) {
  const Api& api = context_->api;
  out->bytes = std::max(bytes, kSlabBytes);
  if (tn_status s = context_->check(api.host_alloc(&out->host, out->bytes, kHostPortable | kHostMapped), "allocate a parameter buffer", diag); s != TN_OK) return s;
  const tn_status s = context_->check(api.host_device_pointer(&out->device, out->host, 0), "map a parameter buffer", diag);
  if (s != TN_OK) api.host_free(out->host);
  return s;
}

// Puts a slab with room for `bytes` at the end of the list.
tn_status ParamSlabs::next(uint32_t bytes, Handle stream, tn_diag* diag) {
  const Api& api = context_->api;
  if (!slabs_.empty()) {
    Slab& full = slabs_.back();
    int code = kGood;
    if (full.done == nullptr) full.done = context_->take_event(&code);
    if (code == kGood) code = api.event_record(full.done, stream);
    if (tn_status s = context_->check(code, "mark a parameter buffer", diag); s != TN_OK) return s;
  }
  for (size_t i = 0; i + 1 < slabs_.size(); ++i) {
    if (slabs_[i].bytes < bytes || api.event_query(slabs_[i].done) != kGood) continue;
    std::rotate(slabs_.begin() + static_cast<ptrdiff_t>(i), slabs_.begin() + static_cast<ptrdiff_t>(i) + 1, slabs_.end());
    slabs_.back().used = 0;
    return TN_OK;
  }
  Slab slab;
  if (tn_status s = make(bytes, &slab, diag); s != TN_OK) return s;
  slabs_.push_back(slab);
  return TN_OK;
}

tn_status ParamSlabs::put(const void* params, uint32_t bytes, Handle stream, uint64_t* out, tn_diag* diag) {
  if (slabs_.empty() || slabs_.back().bytes - slabs_.back().used < bytes)
    if (tn_status s = next(bytes, stream, diag); s != TN_OK) return s;
  Slab& slab = slabs_.back();
  std::memcpy(static_cast<char*>(slab.host) + slab.used, params, bytes);
  *out = slab.device + slab.used;
  slab.used = std::min(slab.bytes, (slab.used + bytes + kParamAlign - 1) / kParamAlign * kParamAlign);
  return TN_OK;
}

tn_status EventStream::open(std::shared_ptr<Context> context, int32_t priority, std::unique_ptr<Stream>* out, tn_diag* diag) {
  if (tn_status s = context->alive(diag); s != TN_OK) return s;
  Current current(*context);
  const Api& api = context->api;
  int least = 0, greatest = 0;  // the numerically smaller is the more urgent; ours is the other way round
  if (api.priority_range(&least, &greatest) != kGood) least = greatest = 0;
  Handle stream = nullptr;
  if (tn_status s = context->check(api.stream_create(&stream, kStreamNonBlocking, std::clamp(-priority, greatest, least)), "open a stream", diag); s != TN_OK) return s;
  out->reset(new EventStream(std::move(context), stream));
  return TN_OK;
}

EventStream::~EventStream() {
  Current current(*context_);
  context_->api.stream_sync(stream_);
  slabs_.reset();
  context_->api.stream_destroy(stream_);
}

tn_status EventStream::copy(const Piece& dst, const Piece& src, uint64_t bytes, tn_diag* diag) {
  if (tn_status s = context_->alive(diag); s != TN_OK) return s;
  if (bytes == 0) return TN_OK;
  Current current(*context_);
  const Api& api = context_->api;
  if (src.handle == 0) return context_->check(api.copy_to_device(dst.handle + dst.offset, src.host, bytes, stream_), "copy to the device", diag);
  if (dst.handle == 0) return context_->check(api.copy_to_host(dst.host, src.handle + src.offset, bytes, stream_), "copy to the host", diag);
  return context_->check(api.copy_on_device(dst.handle + dst.offset, src.handle + src.offset, bytes, stream_), "copy on the device", diag);
}

tn_status EventStream::fill_zero(uint64_t handle, uint64_t offset, uint64_t bytes, tn_diag* diag) {
  if (tn_status s = context_->alive(diag); s != TN_OK) return s;
  if (bytes == 0) return TN_OK;
  Current current(*context_);
  return context_->check(context_->api.set_words(handle + offset, 0, bytes / 4, stream_), "fill memory with zeros", diag);
}

tn_status EventStream::dispatch(const Dispatch& d, tn_diag* diag) {
  if (tn_status s = context_->alive(diag); s != TN_OK) return s;
  const auto& kernel = *static_cast<const LoadedKernel*>(d.kernel);
  if (d.n_bindings != kernel.n_buffers + (kernel.can_fail ? 1u : 0u) || d.n_bindings + 2 > kMostArguments || d.param_bytes != kernel.param_bytes)
    return report(diag, TN_E_ARG, kErrLaunch, "%s: launch of %s: arguments do not fit\nwhy: %u buffers and %u parameter bytes given, %u and %u declared\ntry: pass what the kernel declares",
                context_->plugin, kernel.name.c_str(), d.n_bindings, d.param_bytes, kernel.n_buffers + (kernel.can_fail ? 1u : 0u), kernel.param_bytes);
  Current current(*context_);
  uint64_t pointers[kMostArguments];
  void* arguments[kMostArguments];
  uint32_t n = 0;
  const auto pass = [&](uint64_t pointer) { pointers[n] = pointer, arguments[n] = &pointers[n], ++n; };
  for (uint32_t i = 0; i < kernel.n_buffers; ++i) pass(d.bindings[i].handle + d.bindings[i].offset);
  if (kernel.params_in_buffer) {
    uint64_t block = 0;
    if (tn_status s = slabs_->put(d.params, d.param_bytes, stream_, &block, diag); s != TN_OK) return s;
    pass(block);
  }
  if (kernel.can_fail) pass(d.bindings[kernel.n_buffers].handle + d.bindings[kernel.n_buffers].offset);
  if (!kernel.params_in_buffer && kernel.param_bytes != 0) arguments[n++] = const_cast<void*>(d.params);
  const int code = context_->api.launch(kernel.function, d.groups[0], d.groups[1], d.groups[2], d.group[0], d.group[1], d.group[2], 0, stream_, arguments, nullptr);
  if (code == kGood) return TN_OK;
  const std::string what = "launch " + kernel.name + " of " + std::to_string(d.groups[0]) + "x" + std::to_string(d.groups[1]) + "x" + std::to_string(d.groups[2]) + " groups of " +
                           std::to_string(d.group[0]) + "x" + std::to_string(d.group[1]) + "x" + std::to_string(d.group[2]);
  return context_->check(code, what.c_str(), diag);
}

tn_status EventStream::fence(std::shared_ptr<Fence>* out, tn_diag* diag) {
  if (tn_status s = context_->alive(diag); s != TN_OK) return s;
  Current current(*context_);
  int code = kGood;
  Handle event = context_->take_event(&code);
  if (event == nullptr) return context_->check(code, "make an event", diag);
  auto made = std::make_shared<EventFence>(context_, event);
  if (tn_status s = context_->check(context_->api.event_record(event, stream_), "record an event", diag); s != TN_OK) return s;
  *out = std::move(made);
  return TN_OK;
}

tn_status EventStream::wait(const std::shared_ptr<Fence>& fence, tn_diag* diag) {
  if (tn_status s = context_->alive(diag); s != TN_OK) return s;
  const auto* event = dynamic_cast<const EventFence*>(fence.get());
  if (event == nullptr || event->context() != context_.get())
    return report(diag, TN_E_UNSUPPORTED, kErrOtherDevice, "%s:%d: a stream cannot wait for this fence\nwhy: it belongs to another device\ntry: wait for it on the host", context_->plugin,
                context_->device);
  Current current(*context_);
  return context_->check(context_->api.stream_wait_event(stream_, event->event(), 0), "wait for another stream", diag);
}

}  // namespace tenon::gpu::cu_like
