// A program's side of the tests: a runtime with one plugin file, isolated, and calls that say what went wrong.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <tenon/runtime.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace tenon::test {

using Clock = std::chrono::steady_clock;
inline double ms_since(Clock::time_point begin) { return std::chrono::duration<double, std::milli>(Clock::now() - begin).count(); }

// A variable for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

class App {
 public:
  // ids: what TENON_ISOLATE names.
  explicit App(const std::string& ids, const std::string& config = "", tn_hooks* hooks = nullptr) : isolate_("TENON_ISOLATE", ids), config_("TENON_CONFIG", "loader.cache=off;loader.probe=off;" + config) {
    tn_runtime_options options{};
    options.size = sizeof options;
    options.flags = TN_RT_NO_SEARCH;
    options.threads = 2;
    options.hooks = hooks;
    diag.size = sizeof diag;
    EXPECT_EQ(tn_runtime_create(&options, &rt, &diag), TN_OK) << diag.msg;
  }
  ~App() {
    for (tn_tensor* t : held_) tn_tensor_release(t);
    const auto begin = Clock::now();
    EXPECT_EQ(tn_runtime_destroy(rt, 10000000000, &diag), TN_OK) << diag.msg;
    EXPECT_LT(ms_since(begin), 15000);
  }
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  tn_status try_load(const std::string& path) { return tn_plugin_load(rt, path.c_str(), &plugin, &diag); }
  void load(const std::string& path) { ASSERT_EQ(try_load(path), TN_OK) << diag.msg; }
  tn_plugin_entry entry(uint32_t index) {
    uint32_t n = 0;
    tn_plugins(rt, nullptr, 0, 0, &n, nullptr);
    std::vector<tn_plugin_entry> all(n);
    tn_plugins(rt, all.data(), sizeof all[0], n, &n, nullptr);
    return index < n ? all[index] : all.at(n - 1);
  }
  pid_t worker() {  // from the note of the plugin's entry; 0 when it is not isolated
    const std::string cause = entry(plugin).cause;
    const size_t at = cause.find("worker process ");
    return at == std::string::npos ? 0 : std::stoi(cause.substr(at + 15));
  }
  uint32_t device(const char* name) {
    uint32_t id = 0;
    EXPECT_EQ(tn_device_find(rt, name, TN_POLICY_REQUIRE, &id, &diag), TN_OK) << diag.msg;
    return id;
  }
  tn_queue* queue(const char* name) {
    tn_queue* q = nullptr;
    EXPECT_EQ(tn_queue_get(rt, device(name), &q, &diag), TN_OK) << diag.msg;
    return q;
  }
  uint32_t floats_type(int64_t n, int64_t stride = 1) {
    tn_type type{};
    type.dtype = TN_F32, type.rank = 1, type.dim[0] = n, type.stride[0] = stride;
    uint32_t id = 0;
    EXPECT_EQ(tn_type_intern(rt, &type, &id, &diag), TN_OK) << diag.msg;
    return id;
  }
  tn_tensor* hold(tn_tensor* t) { return held_.push_back(t), t; }
  tn_status try_floats(tn_queue* q, float value, int64_t n, tn_tensor** out) {
    const std::vector<float> values(static_cast<size_t>(n), value);
    if (tn_status s = tn_tensor_create(q, floats_type(n), out, &diag)) return s;
    hold(*out);
    return tn_tensor_write(q, *out, values.data(), values.size() * 4, &diag);
  }
  tn_tensor* floats(tn_queue* q, float value, int64_t n = 1000) {
    tn_tensor* t = nullptr;
    EXPECT_EQ(try_floats(q, value, n, &t), TN_OK) << diag.msg;
    return t;
  }
  tn_status try_add(tn_queue* q, tn_tensor* a, tn_tensor* b, tn_tensor** out) {
    uint32_t op = 0;
    EXPECT_EQ(tn_op_find(rt, "add", 0, &op, &diag), TN_OK) << diag.msg;
    tn_tensor* in[] = {a, b};
    *out = nullptr;
    const tn_call_args args{op, 0, 0, 0, 2, 1, in, out, nullptr};
    const tn_status s = tn_call(q, &args, &diag);
    if (s == TN_OK) hold(*out);
    return s;
  }
  // 3 + 4 there; "" or what went wrong.
  std::string sum(const char* name, int64_t n = 1000) {
    tn_queue* q = queue(name);
    tn_tensor *a = nullptr, *b = nullptr, *out = nullptr;
    std::vector<float> result(static_cast<size_t>(n));
    if (try_floats(q, 3, n, &a) || try_floats(q, 4, n, &b) || try_add(q, a, b, &out) || tn_tensor_read(q, out, result.data(), result.size() * 4, &diag)) return diag.msg;
    return result == std::vector<float>(static_cast<size_t>(n), 7.0f) ? "" : "wrong result";
  }
  void release_all() {
    for (tn_tensor* t : held_) tn_tensor_release(t);
    held_.clear();
  }

  tn_runtime* rt = nullptr;
  uint32_t plugin = TN_NONE;
  tn_diag diag{};

 private:
  Variable isolate_, config_;
  std::vector<tn_tensor*> held_;
};

// Running or not; a process that ended and was not collected counts as gone.
inline bool runs(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  const size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text.size() > name_end + 2 && text[name_end + 2] != 'Z';
}
inline bool gone_within(pid_t pid, int ms) {
  for (int i = 0; i < ms && runs(pid); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return !runs(pid);
}

}  // namespace tenon::test
