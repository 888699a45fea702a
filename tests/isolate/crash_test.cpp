// What a program sees when the worker of an isolated plugin dies or hangs: a lost device, in time, and nothing else.
#include <atomic>

#include "tests/isolate/app.h"

namespace tenon::test {
namespace {

constexpr uint64_t kMinute = 60000000000;
constexpr double kSoonMs = 15000;  // generous: other programs may be busy; a hang is longer than any test

bool says(const tn_diag& d, const char* words) { return std::strstr(d.msg, words) != nullptr; }

// This thread's queue of a device that may not be found by name any more.
tn_queue* queue_of_lost(App& app, const char* device) {
  tn_device_entry all[16] = {};
  uint32_t n = 0;
  tn_queue* q = nullptr;
  EXPECT_EQ(tn_devices(app.rt, all, sizeof all[0], 16, &n, nullptr), TN_OK);
  for (uint32_t i = 0; i < n && i < 16; ++i) {
    if (std::strcmp(all[i].name, device) != 0) continue;
    EXPECT_EQ(tn_queue_get(app.rt, all[i].device, &q, &app.diag), TN_OK) << app.diag.msg;
  }
  return q;
}

// After the loss of sim:0 everything fails at once with the cause, cpu:0 computes, and the plugin can be loaded anew.
void expect_lost_and_alive(App& app, const char* cause, const char* device = "sim:0", const char* path = SIM_PLUGIN) {
  for (int i = 0; i < 3; ++i) {
    const auto begin = Clock::now();
    tn_tensor* t = nullptr;
    EXPECT_EQ(app.try_floats(queue_of_lost(app, device), 1, 50000 + 20000 * i, &t), TN_E_DEVICE_LOST) << app.diag.msg;
    EXPECT_TRUE(says(app.diag, cause)) << app.diag.msg;
    uint32_t found = 0;
    EXPECT_EQ(tn_device_find(app.rt, device, TN_POLICY_REQUIRE, &found, &app.diag), TN_E_DEVICE_LOST) << app.diag.msg;
    EXPECT_TRUE(says(app.diag, cause)) << app.diag.msg;
    EXPECT_LT(ms_since(begin), kSoonMs);
  }
  EXPECT_EQ(app.sum("cpu:0"), "");
  app.release_all();
  ASSERT_EQ(tn_plugin_unload(app.rt, app.plugin, 1000000000, &app.diag), TN_OK) << app.diag.msg;
  app.load(path);
  EXPECT_EQ(app.sum(device), "");
}

TEST(Crash, a_worker_that_is_killed_in_the_middle_of_a_launch_is_a_lost_device) {
  App app("dev.tenon.sim", "sim.latency_ns=5000000000");  // a launch takes 5 s
  app.load(SIM_PLUGIN);
  tn_queue* q = app.queue("sim:0");
  tn_tensor *a = app.floats(q, 3), *out = nullptr;
  ASSERT_EQ(app.try_add(q, a, a, &out), TN_OK) << app.diag.msg;
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    kill(app.worker(), SIGKILL);
  });
  std::vector<float> result(1000);
  const auto begin = Clock::now();
  EXPECT_EQ(tn_tensor_read(q, out, result.data(), 4000, &app.diag), TN_E_DEVICE_LOST) << app.diag.msg;
  EXPECT_LT(ms_since(begin), 4500);
  killer.join();
  EXPECT_TRUE(says(app.diag, "dev.tenon.sim, process ") && says(app.diag, "SIGKILL")) << app.diag.msg;
  EXPECT_EQ(app.diag.id & 0xFFFF, 46u);
  expect_lost_and_alive(app, "SIGKILL");
}

TEST(Crash, all_threads_that_wait_wake_with_the_loss) {
  App app("dev.tenon.sim", "sim.latency_ns=10000000000");
  app.load(SIM_PLUGIN);
  // The plan is made once, before the threads want it: of two that are made at once one is dropped, which waits for the device.
  tn_tensor *first = app.floats(app.queue("sim:0"), 0, 10), *sum = nullptr;
  ASSERT_EQ(app.try_add(app.queue("sim:0"), first, first, &sum), TN_OK) << app.diag.msg;
  std::atomic<int> waiting{0}, lost{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      tn_diag diag{};
      diag.size = sizeof diag;
      tn_queue* q = nullptr;
      tn_queue_get(app.rt, 2, &q, &diag);
      uint32_t op = 0, type = 0;
      tn_type t{};
      t.dtype = TN_F32, t.rank = 1, t.dim[0] = 10, t.stride[0] = 1;
      tn_tensor *a = nullptr, *out = nullptr;
      float values[10] = {};
      tn_op_find(app.rt, "add", 0, &op, &diag), tn_type_intern(app.rt, &t, &type, &diag);
      tn_tensor_create(q, type, &a, &diag), tn_tensor_write(q, a, values, sizeof values, &diag);
      tn_tensor* in[] = {a, a};
      const tn_call_args args{op, 0, 0, 0, 2, 1, in, &out, nullptr};
      tn_call(q, &args, &diag);
      tn_point point{};
      tn_queue_point(q, &point);
      ++waiting;
      const tn_status s = i % 2 == 0 ? tn_wait(app.rt, &point, 1, kMinute, &diag) : tn_tensor_read(q, out, values, sizeof values, &diag);
      EXPECT_EQ(s, TN_E_DEVICE_LOST) << i << ": " << diag.msg;
      lost += s == TN_E_DEVICE_LOST;
      tn_tensor_release(a), tn_tensor_release(out);
    });
  }
  while (waiting.load() < 8) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const auto begin = Clock::now();
  kill(app.worker(), SIGKILL);
  for (std::thread& t : threads) t.join();
  EXPECT_LT(ms_since(begin), 8000);
  EXPECT_EQ(lost.load(), 8);
  EXPECT_EQ(app.sum("cpu:0"), "");
}

TEST(Crash, a_worker_that_is_killed_at_any_moment_never_hangs_the_program) {
  for (int round = 0; round < 60; ++round) {
    App app("dev.tenon.sim", "loader.isolate_timeout_ms=3000");
    app.load(SIM_PLUGIN);
    const pid_t worker = app.worker();
    std::thread killer([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(300 * round));
      kill(worker, SIGKILL);
    });
    const auto begin = Clock::now();
    std::string said;
    while (said.empty() && ms_since(begin) < kSoonMs) {
      tn_queue* q = nullptr;
      tn_tensor *a = nullptr, *out = nullptr;
      float result[100];
      uint32_t device = 0;
      const bool failed = tn_device_find(app.rt, "sim:0", TN_POLICY_REQUIRE, &device, &app.diag) || tn_queue_get(app.rt, device, &q, &app.diag) || app.try_floats(q, 3, 100, &a) || app.try_add(q, a, a, &out) || tn_tensor_read(q, out, result, sizeof result, &app.diag);
      if (failed) said = app.diag.msg;
      app.release_all();
    }
    killer.join();
    EXPECT_NE(said.find("SIGKILL"), std::string::npos) << said;
    EXPECT_LT(ms_since(begin), kSoonMs);
    EXPECT_EQ(app.sum("cpu:0"), "");
  }
}

TEST(Crash, a_worker_that_stands_still_is_given_up_within_the_limit) {
  App app("dev.tenon.sim", "loader.isolate_timeout_ms=400");
  app.load(SIM_PLUGIN);
  EXPECT_EQ(app.sum("sim:0"), "");
  const pid_t worker = app.worker();
  kill(worker, SIGSTOP);
  const auto begin = Clock::now();
  tn_tensor* t = nullptr;
  EXPECT_EQ(app.try_floats(app.queue("sim:0"), 1, 100000, &t), TN_E_DEVICE_LOST) << app.diag.msg;
  EXPECT_LT(ms_since(begin), kSoonMs);
  EXPECT_TRUE(says(app.diag, "within 400 ms")) << app.diag.msg;
  EXPECT_TRUE(gone_within(worker, 2000));
  expect_lost_and_alive(app, "within 400 ms");
}

TEST(Crash, a_wait_without_end_is_given_up_when_the_worker_stands_still) {
  App app("dev.tenon.sim", "loader.isolate_timeout_ms=400;sim.latency_ns=500000000");
  app.load(SIM_PLUGIN);
  tn_queue* q = app.queue("sim:0");
  tn_tensor *a = app.floats(q, 3), *out = nullptr;
  ASSERT_EQ(app.try_add(q, a, a, &out), TN_OK);
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    kill(app.worker(), SIGSTOP);
  });
  std::vector<float> result(1000);
  const auto begin = Clock::now();
  EXPECT_EQ(tn_tensor_read(q, out, result.data(), 4000, &app.diag), TN_E_DEVICE_LOST) << app.diag.msg;
  EXPECT_LT(ms_since(begin), kSoonMs);
  stopper.join();
}

// ---- the fault kit -------------------------------------------------------------------------------------------------------

std::string device_of(const std::string& name) { return name.substr(0, 11) + ":0"; }  // names of devices are short
std::string fault(const std::string& name) { return std::string(FAULT_DIR "/") + name + ".so"; }

TEST(Faults, a_good_plugin_whose_memory_is_the_hosts_works_on_shared_memory) {
  App app("test.good");
  app.load(fault("good"));
  EXPECT_GT(app.worker(), 0);
  EXPECT_EQ(app.sum("good:0"), "");
  EXPECT_EQ(app.sum("good:0", 3000000), "");
}

TEST(Faults, host_memory_given_by_the_program_is_read_and_only_results_are_written_back) {
  App app("test.good");
  app.load(fault("good"));
  tn_queue* q = app.queue("good:0");
  std::vector<float> in(1000, 3.0f), result(1000, -1.0f);
  tn_tensor *a = nullptr, *b = app.floats(q, 4), *out = nullptr;
  ASSERT_EQ(tn_tensor_from_host(app.rt, app.device("good:0"), app.floats_type(1000), in.data(), 4000, nullptr, nullptr, &a, &app.diag), TN_OK) << app.diag.msg;
  ASSERT_EQ(tn_tensor_from_host(app.rt, app.device("good:0"), app.floats_type(1000), result.data(), 4000, nullptr, nullptr, &out, &app.diag), TN_OK) << app.diag.msg;
  app.hold(a), app.hold(out);
  uint32_t op = 0;
  ASSERT_EQ(tn_op_find(app.rt, "add", 0, &op, &app.diag), TN_OK);
  tn_tensor* operands[] = {a, b};
  const tn_call_args args{op, 0, 0, 0, 2, 1, operands, &out, nullptr};
  ASSERT_EQ(tn_call(q, &args, &app.diag), TN_OK) << app.diag.msg;
  EXPECT_EQ(result, std::vector<float>(1000, 7.0f));
  EXPECT_EQ(in, std::vector<float>(1000, 3.0f));
}

TEST(Faults, in_a_launch_lose_the_device_and_harm_nothing_else) {
  struct Row { const char* name; const char* cause; };
  for (const Row& row : {Row{"crash_launch", "SIGSEGV"}, Row{"ill_launch", "SIG"}, Row{"abort_launch", "SIGABRT"}, Row{"leave_launch", "exit status 0"}, Row{"throw_launch", "SIGABRT"}, Row{"hang_launch", "no answer to launch within 500 ms"}}) {
    SCOPED_TRACE(row.name);
    App app(std::string("test.") + row.name, "loader.isolate_timeout_ms=500");
    app.load(fault(row.name));
    tn_queue* q = app.queue(device_of(row.name).c_str());
    tn_tensor *a = app.floats(q, 3), *out = nullptr;
    const auto begin = Clock::now();
    EXPECT_EQ(app.try_add(q, a, a, &out), TN_E_DEVICE_LOST) << app.diag.msg;
    EXPECT_TRUE(says(app.diag, row.cause)) << app.diag.msg;
    EXPECT_LT(ms_since(begin), kSoonMs);
    EXPECT_EQ(app.sum("cpu:0"), "");
  }
}

TEST(Faults, while_a_plugin_starts_are_verdicts_of_that_plugin) {
  for (const char* kind : {"crash", "throw"}) {
    for (const char* at : {"constructor", "query", "open", "kernels", "devices"}) {
      const std::string name = std::string(kind) + "_" + at;
      SCOPED_TRACE(name);
      App app("test." + name, "loader.isolate_timeout_ms=1000");
      EXPECT_NE(app.try_load(fault(name)), TN_OK);
      EXPECT_NE(app.entry(TN_NONE).code, 0u) << app.entry(TN_NONE).cause;
      EXPECT_EQ(app.sum("cpu:0"), "");
    }
  }
  for (const char* name : {"hang_constructor", "hang_query", "hang_open", "hang_devices", "leave_constructor", "leave_query", "leave_open", "leave_devices", "ill_constructor", "abort_open", "crash_load"}) {
    SCOPED_TRACE(name);
    App app(std::string("test.") + name, "loader.isolate_timeout_ms=300");
    const auto begin = Clock::now();
    EXPECT_NE(app.try_load(fault(name)), TN_OK);
    EXPECT_LT(ms_since(begin), kSoonMs);
    EXPECT_EQ(app.entry(TN_NONE).code, 19u) << app.entry(TN_NONE).cause;
    EXPECT_EQ(app.sum("cpu:0"), "");
  }
}

TEST(Faults, while_a_plugin_is_asked_or_ends_harm_nothing) {
  for (const char* name : {"crash_supports", "throw_supports", "crash_close", "throw_close", "crash_exit", "rounding_launch", "rounding_open", "lie_cost", "lie_memory", "lie_uuid", "lie_name", "table_huge", "leak", "fail_alloc", "overrun"}) {
    SCOPED_TRACE(name);
    App app(std::string("test.") + name, "loader.isolate_timeout_ms=1000");
    app.load(fault(name));
    tn_queue* q = app.queue(device_of(name).c_str());
    tn_tensor *a = app.floats(q, 3), *out = nullptr;
    static_cast<void>(app.try_add(q, a, a, &out));
    EXPECT_EQ(app.sum("cpu:0"), "");
    app.release_all();
    EXPECT_EQ(tn_plugin_unload(app.rt, app.plugin, 1000000000, &app.diag), TN_OK) << app.diag.msg;
    EXPECT_EQ(app.sum("cpu:0"), "");
  }
}

TEST(Faults, a_plugin_that_counts_a_live_object_for_ever_is_not_unloaded_and_nothing_waits_for_it) {
  App app("test.lie_live");
  app.load(fault("lie_live"));
  const auto begin = Clock::now();
  EXPECT_EQ(tn_plugin_unload(app.rt, app.plugin, TN_FOREVER, &app.diag), TN_E_BUSY);
  EXPECT_TRUE(says(app.diag, "it counts 1 live objects")) << app.diag.msg;
  EXPECT_LT(ms_since(begin), kSoonMs);
}

TEST(Faults, in_the_table_are_the_verdicts_that_they_are_without_isolation) {
  struct Row { const char* name; uint32_t code; };
  for (const Row& row : {Row{"null_table", 14}, Row{"lie_abi", 17}, Row{"half_group", 17}, Row{"table_0", 17}, Row{"table_4", 17}, Row{"table_short", 17}, Row{"lie_count", 19}, Row{"lie_stride", 19}, Row{"lie_row", 19}, Row{"fail_open", 19}}) {
    SCOPED_TRACE(row.name);
    App app(std::string("test.") + row.name);
    EXPECT_NE(app.try_load(fault(row.name)), TN_OK);
    EXPECT_EQ(app.entry(TN_NONE).code, row.code) << app.entry(TN_NONE).cause;
  }
}

}  // namespace
}  // namespace tenon::test
