// A runtime with cpu:0 and the simulated accelerator under a configuration; the default one while it lives.
#pragma once
#include <gtest/gtest.h>
#include <tenon/tenon.hpp>

#include <cstdlib>
#include <functional>
#include <string>

namespace tenon::test {

class Machine {
 public:
  explicit Machine(const std::string& config, uint32_t policy = TN_POLICY_PREFER) : before_(default_runtime()), runtime_(make(config, policy)) { set_default_runtime(runtime_); }
  ~Machine() { set_default_runtime(before_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Device device(const char* name) const { return runtime_.device(name, TN_POLICY_REQUIRE); }
  tn_runtime* get() const { return runtime_.get(); }

  // The C entry of a device, with its verdict.
  tn_device_entry entry(const char* name) const {
    tn_device_entry all[16] = {};
    for (tn_device_entry& e : all) e.size = sizeof e, e.info.size = sizeof e.info;
    uint32_t n = 0;
    EXPECT_EQ(tn_devices(runtime_.get(), all, sizeof all[0], 16, &n, nullptr), TN_OK);
    for (uint32_t i = 0; i < n && i < 16; ++i)
      if (std::string(name) == all[i].name) return all[i];
    ADD_FAILURE() << name << " is not listed";
    return {};
  }

 private:
  static Runtime make(const std::string& config, uint32_t policy) {
    ::setenv("TENON_CONFIG", ("loader.cache=off;loader.probe=off;" + config).c_str(), 1);
    RuntimeOptions o;
    o.flags = TN_RT_NO_SEARCH;
    o.policy = policy;
    Runtime rt(o);
    tn_diag d{sizeof d};
    EXPECT_EQ(tn_plugin_load(rt.get(), TENON_PLUGINS "/libtenon_backend_sim.so", nullptr, &d), TN_OK) << d.msg;
    ::unsetenv("TENON_CONFIG");
    return rt;
  }
  Runtime before_, runtime_;
};

// What is thrown, else an error that no test expects.
inline Error thrown(const std::function<void()>& f) {
  try { f(); } catch (const Error& e) { return e; }
  return Error(TN_OK, 0, "nothing was thrown", Where{"", 0}, "", "", "");
}
inline bool says(const Error& e, const char* part) { return std::string(e.what()).find(part) != std::string::npos; }

// cpu:0 computes as if nothing had happened.
inline void expect_cpu_goes_on(const Machine& m) {
  const Tensor x = from_vector(std::vector<float>{1, 2, 3}, {3}, {.device = m.device("cpu:0")});
  EXPECT_EQ((x + x).to_vector<float>(), (std::vector<float>{2, 4, 6}));
}

}  // namespace tenon::test
