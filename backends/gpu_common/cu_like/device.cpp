#include "backends/gpu_common/cu_like/device.h"

#include <algorithm>

#include "backends/gpu_common/cu_like/stream.h"

namespace tenon::gpu::cu_like {

CuDevice::CuDevice(const Flavor& flavor, const Compiler& compiler, const Facts& facts, const std::string& driver_text, std::shared_ptr<Context> context)
    : flavor_(flavor), compiler_(compiler), facts_(facts), driver_text_(driver_text), context_(std::move(context)) {}

tn_status CuDevice::open(const Api& api, const Flavor& flavor, const Compiler& compiler, const Facts& facts, const std::string& driver_text, std::unique_ptr<Device>* out,
                         tn_diag* diag) {
  std::shared_ptr<Context> context;
  if (tn_status s = Context::open(api, flavor.kind, flavor.plugin, facts.device, &context, diag); s != TN_OK) return s;
  std::unique_ptr<CuDevice> made(new CuDevice(flavor, compiler, facts, driver_text, context));
  Current current(*context);
  if (tn_status s = context->check(api.stream_create(&made->alloc_stream_, kStreamNonBlocking, 0), "open a stream for allocations", diag); s != TN_OK) return s;
  *out = std::move(made);
  return TN_OK;
}

CuDevice::~CuDevice() {
  const Api& api = context_->api;
  Current current(*context_);
  for (const auto& [handle, block] : blocks_) block.host != nullptr ? api.host_free(block.host) : api.mem_free(block.base);
  if (alloc_stream_ != nullptr) api.stream_destroy(alloc_stream_);
}

// The stream-ordered allocator hands memory back without waiting for all other work of the device, as plain freeing does.
tn_status CuDevice::alloc_device(uint64_t bytes, uint64_t* out, tn_diag* diag) {
  const Api& api = context_->api;
  const std::string what = "allocate " + std::to_string(bytes) + " bytes";
  if (!facts_.pools) return context_->check(api.mem_alloc(out, bytes), what.c_str(), diag);
  if (tn_status s = context_->check(api.mem_alloc_async(out, bytes, alloc_stream_), what.c_str(), diag); s != TN_OK) return s;
  return context_->check(api.stream_sync(alloc_stream_), what.c_str(), diag);
}

tn_status CuDevice::alloc(uint64_t bytes, uint64_t align, bool host_visible, Memory* out, tn_diag* diag) {
  if (tn_status s = context_->alive(diag); s != TN_OK) return s;
  constexpr uint64_t kDriverAlign = 256;  // both drivers align at least so
  const uint64_t asked = std::max<uint64_t>(bytes, 1) + (align > kDriverAlign ? align : 0);
  Current current(*context_);
  const Api& api = context_->api;
  Block block;
  if (host_visible) {
    const std::string what = "allocate " + std::to_string(asked) + " bytes of pinned host memory";
    if (tn_status s = context_->check(api.host_alloc(&block.host, asked, kHostPortable | kHostMapped), what.c_str(), diag); s != TN_OK) return s;
    if (tn_status s = context_->check(api.host_device_pointer(&block.base, block.host, 0), "map pinned memory", diag); s != TN_OK) {
      api.host_free(block.host);
      return s;
    }
  } else if (tn_status s = alloc_device(asked, &block.base, diag); s != TN_OK) {
    return s;
  }
  const uint64_t handle = align > kDriverAlign ? (block.base + align - 1) / align * align : block.base;
  out->handle = out->dev_addr = handle;
  out->host = block.host != nullptr ? static_cast<char*>(block.host) + (handle - block.base) : nullptr;
  std::lock_guard lock(mutex_);
  blocks_.emplace(handle, block);
  return TN_OK;
}

void CuDevice::free(uint64_t handle) {
  Block block;
  {
    std::lock_guard lock(mutex_);
    const auto found = blocks_.find(handle);
    if (found == blocks_.end()) return;
    block = found->second;
    blocks_.erase(found);
  }
  Current current(*context_);
  const Api& api = context_->api;
  if (block.host != nullptr)
    api.host_free(block.host);
  else if (facts_.pools)
    api.mem_free_async(block.base, alloc_stream_);
  else
    api.mem_free(block.base);
}

tn_status CuDevice::open_stream(int32_t priority, std::unique_ptr<Stream>* out, tn_diag* diag) { return EventStream::open(context_, priority, out, diag); }

tn_status CuDevice::compile(const KernelSpec& spec, const std::string& text, const RenderOptions&, std::string* binary, tn_diag* diag) {
  std::string target;
  if (tn_status s = compiler_.target(facts_.architecture, &target, diag); s != TN_OK) return s;
  return compiler_.compile(spec.name, text, target, binary, diag);
}

tn_status CuDevice::load(const KernelSpec& spec, const RenderOptions& options, const std::string& binary, std::unique_ptr<Kernel>* out, tn_diag* diag) {
  return LoadedKernel::load(context_, spec, options, binary, out, diag);
}

std::string CuDevice::cache_key() const {
  std::string key = driver_text_ + "; " + facts_.architecture;
  std::string target;
  if (compiler_.target(facts_.architecture, &target, nullptr) == TN_OK) key += "; " + target;
  for (const std::string& option : compiler_.options()) key += " " + option;
  return key;
}

tn_status CuDevice::health(tn_diag* diag) {
  if (tn_status s = context_->alive(diag); s != TN_OK) return s;
  Current current(*context_);
  size_t free = 0, total = 0;
  const int code = context_->api.mem_info(&free, &total);
  return is_sticky(code) ? context_->check(code, "ask the device", diag) : TN_OK;
}

uint64_t CuDevice::native() const {
  return context_->context != nullptr ? reinterpret_cast<uint64_t>(context_->context) : static_cast<uint64_t>(facts_.device);
}

uint64_t CuDevice::free_bytes() {
  Current current(*context_);
  size_t free = 0, total = 0;
  return context_->api.mem_info(&free, &total) == kGood ? free : 0;
}

}  // namespace tenon::gpu::cu_like
