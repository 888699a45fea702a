// A plugin in a worker process: what the program sees of it while all is well, and when the worker starts and ends.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <mutex>

#include "tests/isolate/app.h"

namespace tenon::test {
namespace {

TEST(Isolated, a_plugin_computes_in_a_process_of_its_own_and_its_file_is_not_mapped_here) {
  App app("dev.tenon.sim");
  app.load(SIM_PLUGIN);
  EXPECT_EQ(app.sum("sim:0"), "");
  EXPECT_GT(app.worker(), 0);
  EXPECT_NE(app.worker(), getpid());
  EXPECT_TRUE(runs(app.worker()));
  std::ifstream maps("/proc/self/maps");
  const std::string text((std::istreambuf_iterator<char>(maps)), {});
  EXPECT_EQ(text.find("libtenon_backend_sim"), std::string::npos);
}

TEST(Isolated, a_plugin_that_is_not_named_stays_in_the_program) {
  App app("dev.tenon.other");
  app.load(SIM_PLUGIN);
  EXPECT_EQ(app.worker(), 0);
  EXPECT_EQ(app.sum("sim:0"), "");
}

TEST(Isolated, settings_reach_the_plugin) {
  App app("dev.tenon.sim", "sim.devices=3;sim.memory_bytes=1000000");
  app.load(SIM_PLUGIN);
  EXPECT_EQ(app.sum("sim:2"), "");
  tn_tensor* t = nullptr;
  EXPECT_EQ(app.try_floats(app.queue("sim:2"), 0, 1000000, &t), TN_E_OOM);
  EXPECT_NE(std::strstr(app.diag.msg, "sim:2 is out of memory"), nullptr) << app.diag.msg;
}

TEST(Isolated, the_setting_in_the_configuration_does_the_same_as_the_variable) {
  App app("", "loader.isolate=dev.tenon.sim");
  app.load(SIM_PLUGIN);
  EXPECT_GT(app.worker(), 0);
  EXPECT_EQ(app.sum("sim:0"), "");
}

TEST(Isolated, what_the_plugin_asks_of_its_host_is_answered_and_what_it_says_arrives) {
  struct Heard {
    std::mutex mutex;
    std::string text;
  } heard;
  tn_hooks hooks{};
  hooks.size = sizeof hooks;
  hooks.ctx = &heard;
  hooks.log = [](void* ctx, uint32_t, const char* msg, uint32_t len) {
    auto* h = static_cast<Heard*>(ctx);
    std::lock_guard lock(h->mutex);
    h->text.append(msg, len) += '\n';
  };
  hooks.cancelled = [](void*) -> int32_t { return 1; };
  App app("dev.tenon.null", "talker.word=tea", &hooks);
  app.load(TALKER);
  EXPECT_GT(app.worker(), 0);
  for (int i = 0; i < 1000; ++i) {  // lines come on their own way
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::lock_guard lock(heard.mutex);
    if (heard.text.find("aligned") != std::string::npos) break;
  }
  std::lock_guard lock(heard.mutex);
  for (const char* line : {"talker: word tea, 1\n", "talker: sum 499500\n", "talker: threads 2\n", "talker: cancelled 1\n", "talker: aligned 1\n"}) EXPECT_NE(heard.text.find(line), std::string::npos) << line << "in\n" << heard.text;
}

TEST(Isolated, large_copies_come_back_as_they_were) {
  App app("dev.tenon.sim");
  app.load(SIM_PLUGIN);
  tn_queue* q = app.queue("sim:0");
  for (const size_t n : {size_t{1}, size_t{1} << 16, (size_t{40} << 20) / 4 + 3}) {
    std::vector<float> sent(n), got(n);
    for (size_t i = 0; i < n; ++i) sent[i] = static_cast<float>(i % 1000003);
    tn_tensor* t = nullptr;
    ASSERT_EQ(tn_tensor_create(q, app.floats_type(static_cast<int64_t>(n)), &t, &app.diag), TN_OK) << app.diag.msg;
    app.hold(t);
    ASSERT_EQ(tn_tensor_write(q, t, sent.data(), n * 4, &app.diag), TN_OK) << app.diag.msg;
    ASSERT_EQ(tn_tensor_read(q, t, got.data(), n * 4, &app.diag), TN_OK) << app.diag.msg;
    EXPECT_EQ(sent, got);
  }
}

TEST(Isolated, unloading_ends_the_worker_and_loading_starts_another) {
  App app("dev.tenon.sim");
  app.load(SIM_PLUGIN);
  const pid_t first = app.worker();
  EXPECT_EQ(app.sum("sim:0"), "");
  app.release_all();
  ASSERT_EQ(tn_plugin_unload(app.rt, app.plugin, 1000000000, &app.diag), TN_OK) << app.diag.msg;
  EXPECT_TRUE(gone_within(first, 15000));
  EXPECT_EQ(app.entry(app.plugin).code, 22u);
  EXPECT_STREQ(app.entry(app.plugin).cause, "by tn_plugin_unload");
  app.load(SIM_PLUGIN);
  EXPECT_NE(app.worker(), first);
  EXPECT_EQ(app.sum("sim:0"), "");
}

TEST(Isolated, a_hundred_lives_leave_no_process_thread_descriptor_or_mapping) {
  const auto held = [] {
    const auto count = [](const char* folder) { return std::distance(std::filesystem::directory_iterator(folder), {}); };
    std::ifstream maps("/proc/self/maps");
    return std::vector<int64_t>{count("/proc/self/fd"), count("/proc/self/task"), std::count(std::istreambuf_iterator<char>(maps), {}, '\n')};
  };
  App app("dev.tenon.sim");
  std::vector<int64_t> before;
  for (int i = 0; i < 110; ++i) {
    app.load(SIM_PLUGIN);
    ASSERT_EQ(app.sum("sim:0"), "");
    app.release_all();
    ASSERT_EQ(tn_plugin_unload(app.rt, app.plugin, 1000000000, &app.diag), TN_OK) << app.diag.msg;
    if (i == 9) before = held();
  }
  EXPECT_EQ(held(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST(Isolated, the_worker_has_the_descriptors_it_needs_and_no_others) {
  const int ours = open("/etc/hostname", O_RDONLY);  // not closed on exec
  App app("dev.tenon.sim");
  app.load(SIM_PLUGIN);
  EXPECT_EQ(app.sum("sim:0"), "");
  for (const auto& e : std::filesystem::directory_iterator("/proc/" + std::to_string(app.worker()) + "/fd")) {
    const std::string to = std::filesystem::read_symlink(e.path()).string();
    EXPECT_NE(to, std::filesystem::canonical("/etc/hostname").string());
  }
  close(ours);
}

TEST(Isolated, a_child_of_fork_is_refused_at_once_and_the_parent_goes_on) {
  App app("dev.tenon.sim");
  app.load(SIM_PLUGIN);
  EXPECT_EQ(app.sum("sim:0"), "");
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    tn_tensor *a = nullptr;
    const tn_status s = app.try_floats(app.queue("sim:0"), 1, 4096, &a);
    _exit(s == TN_E_STATE && std::strstr(app.diag.msg, "after fork") != nullptr ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(app.sum("sim:0"), "");
}

TEST(Isolated, ending_the_runtime_in_a_child_of_fork_leaves_the_parents_worker_alone) {
  App app("dev.tenon.sim");
  app.load(SIM_PLUGIN);
  EXPECT_EQ(app.sum("sim:0"), "");
  app.release_all();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    tn_runtime_destroy(app.rt, 1000000000, nullptr);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(app.sum("sim:0"), "");
}

// The program is a child of the test, so that it can be killed.
TEST(Isolated, the_worker_ends_with_a_program_that_is_killed_and_with_one_that_exits) {
  for (const bool killed : {true, false}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t program = fork();
    if (program == 0) {
      App* app = new App("dev.tenon.sim");  // never ended
      // Loaded by a thread that is gone by now: the worker does not depend on it.
      std::thread([&] { app->load(SIM_PLUGIN); }).join();
      const pid_t worker = app->sum("sim:0").empty() ? app->worker() : 0;
      if (write(ends[1], &worker, sizeof worker) != sizeof worker) _exit(1);
      if (killed) pause();
      exit(0);
    }
    pid_t worker = 0;
    ASSERT_EQ(read(ends[0], &worker, sizeof worker), static_cast<ssize_t>(sizeof worker));
    ASSERT_GT(worker, 0);
    if (killed) {
      EXPECT_TRUE(runs(worker));
      kill(program, SIGKILL);
    }
    waitpid(program, nullptr, 0);
    EXPECT_TRUE(gone_within(worker, 15000));
    close(ends[0]), close(ends[1]);
  }
}

TEST(Isolated, work_that_takes_longer_than_the_limit_is_waited_for) {
  App app("dev.tenon.sim", "sim.latency_ns=900000000;loader.isolate_timeout_ms=200");
  app.load(SIM_PLUGIN);
  EXPECT_EQ(app.sum("sim:0"), "");
}

TEST(Isolated, a_wait_ends_in_its_own_time) {
  App app("dev.tenon.sim", "sim.latency_ns=1500000000;loader.isolate_timeout_ms=200");
  app.load(SIM_PLUGIN);
  tn_queue* q = app.queue("sim:0");
  tn_tensor* out = nullptr;
  tn_tensor* a = app.floats(q, 1);
  ASSERT_EQ(app.try_add(q, a, a, &out), TN_OK) << app.diag.msg;
  tn_point point{};
  tn_queue_point(q, &point);
  const auto begin = Clock::now();
  EXPECT_EQ(tn_wait(app.rt, &point, 1, 300000000, &app.diag), TN_E_TIMEOUT);
  EXPECT_GE(ms_since(begin), 290);
  EXPECT_LT(ms_since(begin), 1400);
  EXPECT_EQ(tn_wait(app.rt, &point, 1, TN_FOREVER, &app.diag), TN_OK) << app.diag.msg;
}

// ---- what cannot be isolated --------------------------------------------------------------------------------------------

TEST(NotIsolated, a_kernel_pack_is_refused_with_the_reason) {
  App app("dev.tenon.cpu-kernels");
  EXPECT_EQ(app.try_load(CPU_PLUGIN), TN_E_UNSUPPORTED);
  EXPECT_NE(std::strstr(app.diag.msg, "it has no devices of its own"), nullptr) << app.diag.msg;
  EXPECT_EQ(app.diag.id & 0xFFFF, 26u);
  EXPECT_EQ(app.sum("cpu:0"), "");
}

TEST(NotIsolated, the_linked_plugin_is_refused) {
  const Variable ids("TENON_ISOLATE", "dev.tenon.cpu");
  tn_runtime_options options{};
  options.size = sizeof options, options.flags = TN_RT_NO_SEARCH;
  tn_runtime* rt = nullptr;
  tn_diag diag{};
  EXPECT_EQ(tn_runtime_create(&options, &rt, &diag), TN_E_UNSUPPORTED);
  EXPECT_NE(std::strstr(diag.msg, "linked into the program"), nullptr) << diag.msg;
}

TEST(NotIsolated, an_id_that_no_plugin_has_is_an_error) {
  const Variable ids("TENON_ISOLATE", "dev.tenon.sim,dev.tenon.smi");
  const std::string folder = std::filesystem::path(SIM_PLUGIN).parent_path().string();
  const char* paths[] = {folder.c_str()};
  tn_runtime_options options{};
  options.size = sizeof options, options.paths = paths, options.n_paths = 1;
  tn_runtime* rt = nullptr;
  tn_diag diag{};
  EXPECT_EQ(tn_runtime_create(&options, &rt, &diag), TN_E_NOT_FOUND);
  EXPECT_NE(std::strstr(diag.msg, "\"dev.tenon.smi\""), nullptr) << diag.msg;
  EXPECT_EQ(diag.id & 0xFFFF, 47u);
}

}  // namespace
}  // namespace tenon::test
