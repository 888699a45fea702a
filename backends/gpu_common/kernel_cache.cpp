#include "backends/gpu_common/kernel_cache.h"

#include <new>

#include "backends/gpu_common/errors.h"

namespace tenon::gpu {
namespace {
constexpr size_t kMost = 1024;  // loaded kernels; beyond it those that no plan uses are let go
}

tn_status KernelCache::make(std::shared_ptr<const KernelSpec> spec, const RenderOptions& options, const std::string& text, std::shared_ptr<const LoadedKernel>* out, tn_diag* diag) const {
  const std::string key = text + '\0' + "abi " + std::to_string(TN_ABI_CURRENT) + " dialect " + std::to_string(int(options.dialect)) + " params_in_buffer " +
                          std::to_string(options.params_in_buffer) + '\0' + device_.cache_key();
  const auto compile = [&](std::string* binary, tn_diag* d) { return device_.compile(*spec, text, options, binary, d); };
  auto loaded = std::make_shared<LoadedKernel>();
  std::string binary;
  if (tn_status s = store_.obtain(spec->name, key, compile, &binary, diag); s != TN_OK) return s;
  tn_status s = device_.load(*spec, options, binary, &loaded->kernel, diag);
  if (s != TN_OK && s != TN_E_DEVICE_LOST && s != TN_E_OOM) {  // a driver may refuse what another build of it has written
    store_.forget(spec->name, key);
    s = compile(&binary, diag);
    if (s == TN_OK) s = device_.load(*spec, options, binary, &loaded->kernel, diag);
  }
  if (s != TN_OK) return s;
  loaded->spec = std::move(spec), loaded->options = options;
  *out = std::move(loaded);
  return TN_OK;
}

void KernelCache::drop_unused() {
  for (auto it = entries_.begin(); it != entries_.end();)
    it = it->second.callers == 0 && it->second.kernel.use_count() <= 1 ? entries_.erase(it) : std::next(it);
}

tn_status KernelCache::get(std::shared_ptr<const KernelSpec> spec, const Caps& caps, std::shared_ptr<const LoadedKernel>* out, tn_diag* diag) {
  const RenderOptions options = render_options(*spec, caps);
  const std::string text = render(*spec, options);
  std::unique_lock lock(mutex_);
  if (entries_.size() >= kMost) drop_unused();
  Entry& entry = entries_[text];  // stays where it is in the map, and in it while it has callers
  struct Caller {
    explicit Caller(Entry& e) : entry(e) { ++entry.callers; }
    ~Caller() { --entry.callers; }
    Entry& entry;
  };
  const Caller caller(entry);  // dies before the lock does
  changed_.wait(lock, [&] { return !entry.busy; });
  if (entry.kernel != nullptr) return *out = entry.kernel, TN_OK;
  entry.busy = true;
  lock.unlock();
  std::shared_ptr<const LoadedKernel> made;
  tn_status status = TN_OK;
  try {
    status = make(std::move(spec), options, text, &made, diag);
  } catch (const std::exception&) {
    status = report(diag, TN_E_OOM, kErrOutOfMemory, "prepare: no memory\nwhy: the heap is exhausted\ntry: free memory");
  }
  lock.lock();
  entry.busy = false;
  entry.kernel = made;
  changed_.notify_all();
  if (status == TN_OK) *out = std::move(made);
  return status;
}

}  // namespace tenon::gpu
