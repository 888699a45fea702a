// tests/reports/session.h - a runtime as a program has it, with what its hooks heard, and calls on f32 vectors.
#pragma once
#include <gtest/gtest.h>
#include <tenon/ops.h>
#include <tenon/runtime.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

class Session {
 public:
  // Looks into the given folders; into none when there are none.
  explicit Session(std::vector<std::string> folders = {}, uint32_t policy = TN_POLICY_PREFER) {
    std::vector<const char*> paths;
    for (const std::string& f : folders) paths.push_back(f.c_str());
    tn_hooks hooks{};
    hooks.size = sizeof hooks;
    hooks.ctx = this;
    hooks.trace_mask = 1u << TN_EVENT_KERNEL | 1u << TN_EVENT_FALLBACK;
    hooks.log = [](void* ctx, uint32_t, const char* text, uint32_t n) { static_cast<Session*>(ctx)->hear(text, n); };
    hooks.event = [](void* ctx, const tn_event* e) { static_cast<Session*>(ctx)->hear(*e); };
    tn_runtime_options options{};
    options.size = sizeof options;
    options.flags = folders.empty() ? uint32_t{TN_RT_NO_SEARCH} : 0u;
    options.paths = paths.data(), options.n_paths = static_cast<uint32_t>(paths.size());
    options.threads = 1, options.policy = policy;
    options.hooks = &hooks;
    diag.size = sizeof diag;
    status = tn_runtime_create(&options, &rt, &diag);
    EXPECT_EQ(status, TN_OK) << diag.msg;
  }
  ~Session() { EXPECT_EQ(tn_runtime_destroy(rt, TN_FOREVER, &diag), TN_OK) << diag.msg; }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::vector<tn_plugin_entry> plugins() { return list<tn_plugin_entry>([&](auto... a) { return tn_plugins(rt, a..., nullptr); }); }
  std::vector<tn_device_entry> devices() { return list<tn_device_entry>([&](auto... a) { return tn_devices(rt, a..., nullptr); }); }
  std::vector<std::string> device_names() {
    std::vector<std::string> names;
    for (const auto& d : devices()) names.emplace_back(d.name);
    std::sort(names.begin(), names.end());
    return names;
  }
  // The entry of a file, by its name without "libtenon_backend_" and ".so".
  tn_plugin_entry of_file(const std::string& name) {
    for (const tn_plugin_entry& e : plugins())
      if (std::filesystem::path(e.path).filename() == "libtenon_backend_" + name + ".so") return e;
    ADD_FAILURE() << "no entry for " << name;
    return {};
  }
  std::string name_of(uint32_t device) {
    for (const auto& d : devices())
      if (d.device == device) return d.name;
    return "";
  }
  // The name of the device found, "" where none was: then `diag` says why.
  std::string find(const std::string& spec, uint32_t policy = TN_POLICY_PREFER) {
    uint32_t device = 0;
    diag = {};
    diag.size = sizeof diag;
    status = tn_device_find(rt, spec.c_str(), policy, &device, &diag);
    return status == TN_OK ? name_of(device) : "";
  }
  tn_tensor* tensor(const std::string& device, const std::vector<float>& values) {
    uint32_t id = 0, type = 0;
    tn_queue* queue = nullptr;
    tn_type t{};
    t.dtype = TN_F32, t.rank = 1, t.dim[0] = static_cast<int64_t>(values.size()), t.stride[0] = 1;
    tn_tensor* made = nullptr;
    if (tn_device_find(rt, device.c_str(), TN_POLICY_REQUIRE, &id, &diag) || tn_queue_get(rt, id, &queue, &diag) || tn_type_intern(rt, &t, &type, &diag) ||
        tn_tensor_create(queue, type, &made, &diag) || tn_tensor_write(queue, made, values.data(), values.size() * 4, &diag))
      ADD_FAILURE() << diag.msg;
    return made;
  }
  // op(values...) on a device; empty where it failed: then `status` and `diag` say why.
  std::vector<float> call(const std::string& device, const char* op, const std::vector<std::vector<float>>& operands, uint32_t flags = 0) {
    uint32_t id = 0, number = 0;
    tn_queue* queue = nullptr;
    diag = {};
    diag.size = sizeof diag;
    status = tn_device_find(rt, device.c_str(), TN_POLICY_REQUIRE, &id, &diag);
    if (status == TN_OK) status = tn_queue_get(rt, id, &queue, &diag);
    if (status == TN_OK) status = tn_op_find(rt, op, 0, &number, &diag);
    if (status != TN_OK) return {};
    std::vector<tn_tensor*> in;
    for (const auto& values : operands) in.push_back(tensor(device, values));
    tn_tensor* out = nullptr;
    const tn_call_args args{number, 0, flags, 0, static_cast<uint32_t>(in.size()), 1, in.data(), &out, nullptr};
    std::vector<float> result(operands[0].size());
    status = tn_call(queue, &args, &diag);
    if (status == TN_OK) status = tn_tensor_read(queue, out, result.data(), result.size() * 4, &diag);
    if (status != TN_OK) result.clear();
    in.push_back(out);
    for (tn_tensor* t : in) tn_tensor_release(t);
    return result;
  }
  void expect_cpu_computes() { EXPECT_EQ(call("cpu:0", "add", {{1, 2}, {3, 4}}), (std::vector<float>{4, 6})) << diag.msg; }

  tn_runtime* rt = nullptr;
  tn_diag diag{};
  tn_status status = TN_OK;
  std::string log;                     // one line each
  std::vector<uint32_t> ran_on;        // device of each kernel
  std::vector<std::string> fallbacks;  // "op: reason"

 private:
  template <class T, class F>
  std::vector<T> list(F fill) {
    uint32_t n = 0;
    EXPECT_EQ(fill(static_cast<T*>(nullptr), uint32_t{sizeof(T)}, 0u, &n), TN_OK);
    std::vector<T> all(n);
    for (T& e : all) e.size = sizeof e;
    EXPECT_EQ(fill(all.data(), uint32_t{sizeof(T)}, n, &n), TN_OK);
    return all;
  }
  void hear(const char* text, uint32_t n) {
    const std::lock_guard lock(mutex_);
    log.append(text, n).append("\n");
  }
  void hear(const tn_event& e) {
    const std::lock_guard lock(mutex_);
    if (e.kind == TN_EVENT_KERNEL) ran_on.push_back(e.device);
    else fallbacks.push_back(std::string(e.name ? e.name : "") + ": " + (e.where ? e.where : ""));
  }
  std::mutex mutex_;
};

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
