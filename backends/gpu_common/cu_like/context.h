// backends/gpu_common/cu_like/context.h - what all objects of one opened device share.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/gpu_common/cu_like/api.h"
#include "backends/gpu_common/cu_like/errors.h"

namespace tenon::gpu::cu_like {

// Lives as long as its last stream, fence or kernel. Threads: any.
class Context {
 public:
  // Retains the device's primary context, the one that the application's own use of the API shares.
  static tn_status open(const Api&, uint32_t kind, const char* plugin, int device, std::shared_ptr<Context>* out, tn_diag*);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Api& api;
  const uint32_t kind;          // TN_KIND_*, the domain of native codes
  const char* const plugin;     // "cuda", "rocm"
  const int device;
  Handle context = nullptr;     // NULL in HIP, where the thread's device is the context

  // TN_OK, or TN_E_DEVICE_LOST with the words of the first loss.
  tn_status alive(tn_diag*) const;
  // What an API number means; a sticky one marks the device as lost. `call`: what was asked, in words.
  tn_status check(int code, const char* call, tn_diag*);
  // The API's name and sentence for a number: "CUDA_ERROR_OUT_OF_MEMORY (2), out of memory".
  std::string words(int code) const;

  // Events cost a driver call each way, so finished ones are used again. take: NULL with the code in *code.
  Handle take_event(int* code);
  void give_event(Handle);

 private:
  Context(const Api&, uint32_t kind, const char* plugin, int device);
  std::atomic<int> lost_{0};
  std::mutex mutex_;
  std::vector<Handle> events_;
};

// Makes the device current on this thread, and what was current before again at the end: the application may use the same API.
class Current {
 public:
  explicit Current(const Context&);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Context& context_;
  int before_ = -1;
  bool changed_ = false;
};

}  // namespace tenon::gpu::cu_like
