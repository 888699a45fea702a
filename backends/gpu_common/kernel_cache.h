// backends/gpu_common/kernel_cache.h - loaded kernels of one opened device, by their text.
#pragma once
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "backends/gpu_common/driver.h"
#include "backends/gpu_common/kernel_store.h"

namespace tenon::gpu {

struct LoadedKernel {
  std::shared_ptr<const KernelSpec> spec;
  std::unique_ptr<Kernel> kernel;
  RenderOptions options;
};

// Threads: any. Threads that want one text wait for the first of them; different texts compile side by side.
class KernelCache {
 public:
  KernelCache(Device& device, const KernelStore& store) : device_(device), store_(store) {}
  // errors: the driver's. A failure is not kept: the next call tries again.
  tn_status get(std::shared_ptr<const KernelSpec> spec, const Caps& caps, std::shared_ptr<const LoadedKernel>* out, tn_diag*);

 private:
  struct Entry { bool busy = false; uint32_t callers = 0; std::shared_ptr<const LoadedKernel> kernel; };
  tn_status make(std::shared_ptr<const KernelSpec> spec, const RenderOptions& options, const std::string& text, std::shared_ptr<const LoadedKernel>* out, tn_diag*) const;
  void drop_unused();
  Device& device_;
  const KernelStore& store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Entry> entries_;
};

}  // namespace tenon::gpu
