// tenon/core/runtime.hpp - the runtime and its devices.
//
//   tenon::Device d = tenon::device("auto");       // the best one; "cuda:0", "cuda,cpu" (order of preference)
//   tenon::Runtime rt({.threads = 2});  tenon::set_default_runtime(rt);
//
// A Runtime is a counted handle. The default one is made on first use and never taken down: nothing runs at exit.
// Threads: everything here may be called from any thread.
#pragma once
#include <tenon/core/error.hpp>
#include <tenon/runtime.h>

#include <memory>
#include <string>
#include <vector>

namespace tenon {
class Generator;
namespace detail {
struct RuntimeState;
struct DeviceState;
}  // namespace detail

// One device of a runtime. Copies are cheap; a Device stays valid as long as its runtime.
class Device {
 public:
  Device() = default;
  explicit operator bool() const { return state_ != nullptr; }
  const char* name() const;  // "cpu:0"
  uint32_t id() const;       // for the C functions of runtime.h
  uint32_t kind() const;     // TN_KIND_*
  tn_runtime* runtime() const;
  void synchronize() const;  // (blocks) until this thread's work on the device is done
  friend bool operator==(Device a, Device b) { return a.state_ == b.state_; }

 private:
  friend struct detail::RuntimeState;
  friend class Tensor;
  friend class Runtime;
  friend Device device(const char*, Where);
  friend detail::DeviceState* state_of(Device d);
  friend Device device_of(detail::DeviceState* s);
  detail::DeviceState* state_ = nullptr;
};
detail::DeviceState* state_of(Device d);
Device device_of(detail::DeviceState* s);

struct RuntimeOptions {
  std::vector<std::string> paths;   // plugin folders, in place of the standard ones
  std::vector<std::string> allow;   // plugin ids, or sha256:...
  uint32_t threads = 0;             // 0 = physical cores
  uint32_t flags = 0;               // TN_RT_*
  uint32_t policy = TN_POLICY_PREFER;
  uint64_t memory_limit_bytes = 0;  // per device; 0 = its budget
  std::string cache_dir;            // empty = standard place
};

class Runtime {
 public:
  explicit Runtime(const RuntimeOptions& options = {}, Where where = here());
  // Uses a runtime made elsewhere, which must outlive this handle.
  static Runtime borrow(tn_runtime* handle, Where where = here());
  tn_runtime* get() const;
  Device device(const std::string& spec, uint32_t policy = TN_POLICY_PREFER, Where where = here()) const;
  Generator& generator() const;  // of random numbers, where a call names no other
  // (blocks) Ends the runtime now. Throws TN-STATE-.. while tensors of it live; dropping the last handle then leaves the
  // runtime in place, since memory in use is never taken away.
  void close(uint64_t timeout_ns, Where where = here());

 private:
  explicit Runtime(std::shared_ptr<detail::RuntimeState> s) : state_(std::move(s)) {}
  friend Runtime& default_runtime();
  std::shared_ptr<detail::RuntimeState> state_;
};

Runtime& default_runtime();                  // made with RuntimeOptions{} on first use
void set_default_runtime(const Runtime& rt);  // later calls without a tensor or device use it
Device device(const char* spec = "auto", Where where = here());  // of the default runtime
Device default_device();                     // where new tensors go: "cpu:0" until changed
void set_default_device(Device d);

}  // namespace tenon
