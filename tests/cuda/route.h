// A driver of this executable's backend on its double, and what a test needs to use it.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/gpu_common/driver.h"

namespace tenon::gpu::test {

// The library under the backend, as a test changes it. One for the process: the backend opens the same file.
class Double {
 public:
  static Double& get() {
    static Double d;
    return d;
  }
  void set(const char* name, const std::string& value) { ASSERT_EQ(set_(name, value.c_str()), 0) << name; }
  long long count(const char* name) const { return count_(name); }
  void reset() {
    for (auto [name, value] : std::initializer_list<std::pair<const char*, const char*>>{{"DEVICES", "1"}, {"MEMORY", "4294967296"}, {"ALIGN", "256"}, {"OOM_AT", "0"}, {"LAUNCH_FAILS_AT", "0"},
             {"LOST_AT", "0"}, {"INIT", "0"}, {"FIBERS", "forward"}, {"WARP", "0"}, {"ARCH", ""}, {"ASYNC", ""}, {"POOLS", "1"}, {"COMPILER_FAULT", ""}})
      set(name, value);
    repair_();
  }

 private:
  Double() {
    void* library = dlopen(TENON_DOUBLE, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror()), std::abort();
    set_ = reinterpret_cast<int (*)(const char*, const char*)>(dlsym(library, "tenon_double_set"));
    count_ = reinterpret_cast<long long (*)(const char*)>(dlsym(library, "tenon_double_count"));
    repair_ = reinterpret_cast<void (*)()>(dlsym(library, "tenon_double_repair"));
  }
  int (*set_)(const char*, const char*);
  long long (*count_)(const char*);
  void (*repair_)();
};

inline bool is_cuda() { return std::string(driver_name()) == "cuda"; }

class Route : public testing::Test {
 protected:
  Route() {
    Double::get().reset();
    config_ = {{"cuda.libcuda", TENON_DOUBLE}, {"cuda.libnvrtc", TENON_DOUBLE}, {"rocm.libamdhip64", TENON_DOUBLE}, {"rocm.libhiprtc", TENON_DOUBLE}, {"rocm.hiprtc_helper", TENON_HIPRTC}};
    host_.size = sizeof host_;
    host_.ctx = &config_;
    host_.config = [](void* ctx, const char* key) -> const char* {
      const auto& all = *static_cast<std::map<std::string, std::string>*>(ctx);
      const auto found = all.find(key);
      return found != all.end() ? found->second.c_str() : nullptr;
    };
  }
  void TearDown() override {
    stream_.reset();
    device_.reset();
    driver_.reset();
    for (const char* what : {"blocks", "bytes", "streams", "events", "modules", "contexts"}) EXPECT_EQ(Double::get().count(what), leaks_allowed_ ? Double::get().count(what) : 0) << what;
  }

  void set(const char* name, const std::string& value) { Double::get().set(name, value); }
  tn_status try_driver() {
    driver_.reset();
    return make_driver(&host_, &driver_, &diag_);
  }
  Device& device() {
    if (!device_) {
      if (!driver_) {
        EXPECT_EQ(try_driver(), TN_OK) << diag_.msg;
      }
      EXPECT_EQ(driver_->open_device(0, &device_, &diag_), TN_OK) << diag_.msg;
    }
    return *device_;
  }
  Stream& stream() {
    if (!stream_) {
      EXPECT_EQ(device().open_stream(0, &stream_, &diag_), TN_OK) << diag_.msg;
    }
    return *stream_;
  }
  bool says(const char* part) const { return std::string(diag_.msg).find(part) != std::string::npos; }

  Memory alloc(uint64_t bytes, bool host_visible = false) {
    Memory m;
    EXPECT_EQ(device().alloc(bytes, 64, host_visible, &m, &diag_), TN_OK) << diag_.msg;
    return m;
  }
  template <class T>
  Memory upload(const std::vector<T>& values) {
    Memory m = alloc(values.size() * sizeof(T));
    EXPECT_EQ(stream().copy({m.handle, 0, nullptr}, {0, 0, const_cast<T*>(values.data())}, values.size() * sizeof(T), &diag_), TN_OK) << diag_.msg;
    return m;
  }
  template <class T>
  std::vector<T> download(const Memory& m, size_t n) {
    std::vector<T> values(n);
    EXPECT_EQ(stream().copy({0, 0, values.data()}, {m.handle, 0, nullptr}, n * sizeof(T), &diag_), TN_OK) << diag_.msg;
    EXPECT_EQ(finish(), TN_OK) << diag_.msg;
    return values;
  }
  tn_status finish(uint64_t timeout_ns = TN_FOREVER) {
    std::shared_ptr<Fence> fence;
    if (tn_status s = stream().fence(&fence, &diag_); s != TN_OK) return s;
    return fence->wait(timeout_ns, &diag_);
  }

  // Text written by hand: the spec gives what the driver wants to know beside it.
  std::unique_ptr<Kernel> kernel(const KernelSpec& spec, const std::string& text, RenderOptions options = {}) {
    std::string binary;
    std::unique_ptr<Kernel> made;
    EXPECT_EQ(device().compile(spec, text, options, &binary, &diag_), TN_OK) << diag_.msg;
    EXPECT_EQ(device().load(spec, options, binary, &made, &diag_), TN_OK) << diag_.msg;
    return made;
  }
  tn_status launch(const Kernel& k, std::vector<Binding> bindings, const std::string& params, uint32_t groups, uint32_t group) {
    Dispatch d;
    d.kernel = &k;
    d.bindings = bindings.data(), d.n_bindings = static_cast<uint32_t>(bindings.size());
    d.params = params.data(), d.param_bytes = static_cast<uint32_t>(params.size());
    d.groups[0] = groups, d.group[0] = group;
    return stream().dispatch(d, &diag_);
  }

  std::map<std::string, std::string> config_;
  tn_host host_{};
  tn_diag diag_{};
  bool leaks_allowed_ = false;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

template <class... T>
std::string block(T... values) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  bytes.resize((bytes.size() + 7) / 8 * 8);
  return bytes;
}

}  // namespace tenon::gpu::test
