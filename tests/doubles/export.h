// tests/doubles/export.h - what both doubles' exported functions are written with.
#pragma once
#define TENON_DOUBLE_API extern "C" __attribute__((visibility("default")))

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "tests/doubles/machine.h"
#include "tests/doubles/memory.h"
#include "tests/doubles/settings.h"

namespace tenon_double {

// Handles that programs hold: only numbers that were given out and not taken back are accepted.
template <class T>
class Handles {
 public:
  void* add(std::shared_ptr<T> object) {
    std::lock_guard lock(mutex_);
    void* handle = reinterpret_cast<void*>(next_ += 16);
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  std::shared_ptr<T> get(void* handle) {
    std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found != objects_.end() ? found->second : nullptr;
  }
  std::shared_ptr<T> take(void* handle) {
    std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    auto object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  template <class Test>
  void drop_if(Test test) {
    std::lock_guard lock(mutex_);
    std::erase_if(objects_, [&](const auto& entry) { return test(*entry.second); });
  }

 private:
  std::mutex mutex_;
  std::unordered_map<void*, std::shared_ptr<T>> objects_;
  uintptr_t next_ = 0x10000;
};

inline Handles<Stream>& streams() {
  static Handles<Stream> h;
  return h;
}
inline Handles<Event>& events() {
  static Handles<Event> h;
  return h;
}
inline Handles<Module>& modules() {
  static Handles<Module> h;
  return h;
}
inline Handles<Function>& functions() {
  static Handles<Function> h;
  return h;
}

// ---- the calls that CUDA and HIP share, once the API's current device is known. All return the API's number.
inline int stream_create(int device, void** out) {
  if (const int code = lost(device)) return code;
  *out = streams().add(std::make_shared<Stream>(device));
  return 0;
}
inline int stream_destroy(void* handle) { return streams().take(handle) ? 0 : 400; }
inline int stream_sync(void* handle) {
  const auto s = streams().get(handle);
  if (!s) return 400;
  s->finish_all();
  return lost(s->device);
}
inline int stream_wait_event(void* stream, void* event) {
  const auto s = streams().get(stream);
  const auto e = events().get(event);
  if (!s || !e) return 400;
  if (const int code = lost(s->device)) return code;
  s->put([e, number = e->recorded()] { e->wait(number); });
  return 0;
}
inline int event_create(int device, void** out) {
  if (const int code = lost(device)) return code;
  *out = events().add(std::make_shared<Event>(device));
  return 0;
}
inline int event_destroy(void* handle) { return events().take(handle) ? 0 : 400; }
inline int event_record(void* event, void* stream) {
  const auto s = streams().get(stream);
  const auto e = events().get(event);
  if (!s || !e || s->device != e->device) return 400;
  if (const int code = lost(s->device)) return code;
  s->put([e, number = e->record()] { e->finish(number); });
  return 0;
}
inline int event_query(void* handle) {
  const auto e = events().get(handle);
  if (!e) return 400;
  if (const int code = lost(e->device)) return code;
  return e->done() ? lost(e->device) : 600;
}
inline int event_sync(void* handle) {
  const auto e = events().get(handle);
  if (!e) return 400;
  e->wait(e->recorded());
  return lost(e->device);
}
// Whether a device of `arch` runs code for `target`: any intermediate code, else itself, or in CUDA a lower minor version.
inline bool runs(const std::string& arch, const std::string& target) {
  if (target.rfind("compute_", 0) == 0 || target == arch) return true;
  if (target.rfind("sm_", 0) != 0 || arch.rfind("sm_", 0) != 0) return false;
  const int a = std::stoi(arch.substr(3)), t = std::stoi(target.substr(3));
  return a / 10 == t / 10 && t <= a;
}
inline int module_load(int device, const std::string& arch, void** out, const void* image) {
  if (const int code = lost(device)) return code;
  std::string target;
  auto module = Module::load(image, &target);
  if (!module) return 200;
  if (!runs(arch, target)) {
    std::fprintf(stderr, "[double] code for %s on a device of %s\n", target.c_str(), arch.c_str());
    return 209;
  }
  *out = modules().add(std::move(module));
  return 0;
}
inline int module_function(void** out, void* module, const char* name) {
  const auto m = modules().get(module);
  if (!m) return 400;
  const TenonKernel* kernel = m->kernel(name);
  if (kernel == nullptr) return 500;
  *out = functions().add(std::make_shared<Function>(Function{m, kernel, name}));
  return 0;
}
inline int module_unload(void* handle) {
  const auto m = modules().take(handle);
  functions().drop_if([&](const Function& f) { return f.module == m; });
  return m ? 0 : 400;
}
inline int launch_on(int device, void* function, void* stream, TenonIndex grid, TenonIndex block, void** arguments, uint32_t warp, uint64_t most_items) {
  const auto f = functions().get(function);
  const auto s = streams().get(stream);
  if (!f || !s || s->device != device) return 400;
  return launch(s.get(), f, grid, block, arguments, warp, most_items);
}
inline int copy_on(void* stream, void* dst, const void* src, size_t bytes, bool dst_is_host, bool src_is_host) {
  const auto s = streams().get(stream);
  return s ? copy(s.get(), dst, src, bytes, dst_is_host, src_is_host) : 400;
}
inline int set_words_on(void* stream, uint64_t dst, unsigned value, size_t words) {
  const auto s = streams().get(stream);
  return s ? set_words(s.get(), dst, value, words) : 400;
}
inline int free_after(uint64_t base, void* stream) {
  const auto s = streams().get(stream);
  Block b;
  if (!s) return 400;
  if (!find(base, 1, &b) || b.base != base || b.pinned) return 1;
  s->put([base] { release(base, false); });
  return 0;
}

// What the error numbers mean that a double gives; the names lack the API's own beginning.
struct ErrorName { int code; const char *cuda, *hip, *text; };
inline const ErrorName* error_name(int code) {
  static constexpr ErrorName kNames[] = {
      {0, "CUDA_SUCCESS", "hipSuccess", "no error"},
      {1, "CUDA_ERROR_INVALID_VALUE", "hipErrorInvalidValue", "invalid argument"},
      {2, "CUDA_ERROR_OUT_OF_MEMORY", "hipErrorOutOfMemory", "out of memory"},
      {3, "CUDA_ERROR_NOT_INITIALIZED", "hipErrorNotInitialized", "initialization error"},
      {100, "CUDA_ERROR_NO_DEVICE", "hipErrorNoDevice", "no device is detected"},
      {101, "CUDA_ERROR_INVALID_DEVICE", "hipErrorInvalidDevice", "invalid device ordinal"},
      {200, "CUDA_ERROR_INVALID_IMAGE", "hipErrorInvalidImage", "device kernel image is invalid"},
      {201, "CUDA_ERROR_INVALID_CONTEXT", "hipErrorInvalidContext", "invalid device context"},
      {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "hipErrorNoBinaryForGpu", "no kernel image for the device"},
      {400, "CUDA_ERROR_INVALID_HANDLE", "hipErrorInvalidHandle", "invalid resource handle"},
      {500, "CUDA_ERROR_NOT_FOUND", "hipErrorNotFound", "named symbol not found"},
      {600, "CUDA_ERROR_NOT_READY", "hipErrorNotReady", "device not ready"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "hipErrorIllegalAddress", "an illegal memory access was encountered"},
      {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "hipErrorLaunchOutOfResources", "too many resources requested for launch"},
      {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "hipErrorIllegalInstruction", "an illegal instruction was encountered"},
      {719, "CUDA_ERROR_LAUNCH_FAILED", "hipErrorLaunchFailure", "unspecified launch failure"},
  };
  for (const ErrorName& n : kNames)
    if (n.code == code) return &n;
  return nullptr;
}

}  // namespace tenon_double
