// tests/devices/machine.h - a made-up machine: plugins in a folder of its own, what their drivers tell, a cache of its own.
#pragma once
#include <gtest/gtest.h>
#include <tenon/ops.h>
#include <tenon/runtime.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

// Variables set by a test are gone after it.
class Variables {
 public:
  ~Variables() {
    for (const std::string& name : names_) unsetenv(name.c_str());
  }
  void set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    names_.push_back(name);
  }
  void unset(const std::string& name) { unsetenv(name.c_str()); }

 private:
  std::vector<std::string> names_;
};

class Machine {
 public:
  Machine() {
    char name[] = "/tmp/tenon_devices_XXXXXX";
    path_ = std::filesystem::canonical(mkdtemp(name)).string();
    std::filesystem::permissions(path_, static_cast<std::filesystem::perms>(0755));
    std::filesystem::create_directory(path_ + "/plugins");
    set("XDG_CACHE_HOME", path_ + "/cache");
    for (const char* filter : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "TENON_DEVICES", "TENON_CONFIG"}) unsetenv(filter);
  }
  ~Machine() { std::filesystem::remove_all(path_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // A plugin under `name`, and the devices that its driver tells.
  void add(const std::string& fake, const std::string& devices) {
    std::filesystem::copy_file(FAKE_DIR "/" + fake + ".so", path_ + "/plugins/libtenon_backend_" + fake + ".so", std::filesystem::copy_options::skip_existing);
    set("TENON_FAKE_" + fake, devices);
  }
  void set(const std::string& name, const std::string& value) { variables_.set(name, value); }
  void unset(const std::string& name) { variables_.unset(name); }
  std::string folder() const { return path_ + "/plugins"; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  // From here on, what fakes do in this process and its children.
  void watch() { set("TENON_FAKE_TRACE", path_ + "/trace"); }
  size_t count(const std::string& line) const {
    std::ifstream file(path_ + "/trace");
    size_t n = 0;
    for (std::string have; std::getline(file, have);) n += have == line;
    return n;
  }

 private:
  std::string path_;
  Variables variables_;
};

class Tenon {
 public:
  explicit Tenon(const Machine& machine, uint32_t policy = TN_POLICY_PREFER) {
    const std::string folder = machine.folder();
    const char* paths[] = {folder.c_str()};
    tn_runtime_options options{};
    options.size = sizeof options;
    options.paths = paths;
    options.n_paths = 1;
    options.threads = 1;
    options.policy = policy;
    tn_hooks hooks{};
    hooks.size = sizeof hooks;
    hooks.ctx = &log;
    hooks.log = [](void* ctx, uint32_t, const char* text, uint32_t n) { static_cast<std::string*>(ctx)->append(text, n).append("\n"); };
    options.hooks = &hooks;
    diag.size = sizeof diag;
    status = tn_runtime_create(&options, &rt, &diag);
  }
  ~Tenon() { EXPECT_EQ(tn_runtime_destroy(rt, TN_FOREVER, &diag), TN_OK) << diag.msg; }
  Tenon(const Tenon&) = delete;
  Tenon& operator=(const Tenon&) = delete;

  std::vector<tn_device_entry> devices() {
    uint32_t n = 0;
    tn_devices(rt, nullptr, 0, 0, &n, nullptr);
    std::vector<tn_device_entry> list(n);
    for (auto& e : list) e.size = sizeof e;
    tn_devices(rt, list.data(), sizeof list[0], n, &n, nullptr);
    return list;
  }
  tn_device_entry device(const std::string& name) {
    for (const tn_device_entry& e : devices())
      if (name == e.name) return e;
    return {};
  }
  // "cpu:0 cuda:0!" with a mark at those that cannot be used.
  std::string names() {
    std::string text;
    for (const tn_device_entry& e : devices()) text += (text.empty() ? "" : " ") + std::string(e.name) + (e.verdict ? "!" : "");
    return text;
  }
  tn_plugin_entry plugin(const std::string& name) {
    uint32_t n = 0;
    tn_plugins(rt, nullptr, 0, 0, &n, nullptr);
    std::vector<tn_plugin_entry> list(n);
    tn_plugins(rt, list.data(), sizeof list[0], n, &n, nullptr);
    for (const tn_plugin_entry& e : list)
      if ("test." + name == e.id) return e;
    return {};
  }
  // Name of what is found; "" and `diag` when nothing is.
  std::string find(const std::string& spec, uint32_t policy = TN_POLICY_REQUIRE) {
    uint32_t id = 0;
    if (tn_device_find(rt, spec.c_str(), policy, &id, &diag) != TN_OK) return "";
    for (const tn_device_entry& e : devices())
      if (e.device == id) return e.name;
    return "?";
  }
  // "" or what went wrong with 3 + 4 on the device.
  std::string add_on(uint32_t device) {
    tn_queue* q = nullptr;
    uint32_t op = 0, type = 0;
    tn_type f32{};
    f32.dtype = TN_F32, f32.rank = 1, f32.dim[0] = 100, f32.stride[0] = 1;
    if (tn_queue_get(rt, device, &q, &diag) || tn_op_find(rt, "add", 0, &op, &diag) || tn_type_intern(rt, &f32, &type, &diag)) return diag.msg;
    tn_tensor *in[2] = {}, *out = nullptr;
    std::vector<float> result(100);
    std::string fault;
    for (int i = 0; i < 2 && fault.empty(); ++i) {
      const std::vector<float> values(100, i == 0 ? 3.0f : 4.0f);
      if (tn_tensor_create(q, type, &in[i], &diag) || tn_tensor_write(q, in[i], values.data(), 400, &diag)) fault = diag.msg;
    }
    const tn_call_args args{op, 0, 0, 0, 2, 1, in, &out, nullptr};
    if (fault.empty() && (tn_call(q, &args, &diag) || tn_tensor_read(q, out, result.data(), 400, &diag))) fault = diag.msg;
    else if (fault.empty() && result != std::vector<float>(100, 7.0f)) fault = "wrong result";
    for (tn_tensor* t : {in[0], in[1], out}) tn_tensor_release(t);
    return fault;
  }

  std::string log;
  tn_runtime* rt = nullptr;
  tn_diag diag{};
  tn_status status = TN_OK;
};
