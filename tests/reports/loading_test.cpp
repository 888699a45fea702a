// Public reports about finding and loading drivers, each tried in its whole kind. docs/reports.md lists them with their rules.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <thread>

#include "tests/loader/temp_folder.h"
#include "tests/reports/fake_driver.h"
#include "tests/reports/session.h"

namespace fs = std::filesystem;

namespace {

constexpr tn_status kFailures[] = {TN_E_ARG, TN_E_OOM, TN_E_UNSUPPORTED, TN_E_UNAVAILABLE, TN_E_DEVICE_LOST, TN_E_FAILED, TN_E_TIMEOUT, TN_E_LIMIT, TN_E_IO, TN_E_DENIED, TN_E_BUG};

// Results of trials go into a folder of this run.
class OwnCache : public testing::Environment {
 public:
  void SetUp() override { setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }

 private:
  TempFolder folder_;
};
const auto* own_cache = testing::AddGlobalTestEnvironment(new OwnCache);

}  // namespace

// KhronosGroup/Vulkan-Loader#1467: one driver that answers "initialisation failed" makes the list of all devices fail.
TEST(PublicReports, vulkan_loader_1467_one_failing_driver_does_not_hide_the_others) {
  std::vector<int> order = {0, 1, 2};
  do {
    for (const char* stage : FakeDriver::kStages)
      for (const tn_status status : kFailures) {
        FakeDriver a("org.example.a", {{}}), b("org.example.b", {{}}), c("org.example.c", {{}, {}});
        b.fail(stage, status, "initialisation failed");
        Session s;
        FakeDriver* const all[] = {&a, &b, &c};
        for (int i : order) {
          tn_diag diag{};
          diag.size = sizeof diag;
          const tn_status linked = all[i]->link(s.rt, &diag);
          EXPECT_EQ(linked == TN_OK, i != 1) << stage << " " << status;
          if (i == 1) { EXPECT_TRUE(has(diag.msg, "org.example.b") && has(diag.msg, "initialisation failed")) << diag.msg; }
        }
        EXPECT_EQ(s.device_names(), (std::vector<std::string>{"a:0", "c:0", "c:1", "cpu:0"})) << stage << " " << status;
        for (const tn_plugin_entry& e : s.plugins()) EXPECT_EQ(e.code, std::strcmp(e.id, "org.example.b") != 0 ? 0u : status == TN_E_UNAVAILABLE ? 18u : 19u) << e.cause;
        EXPECT_EQ(s.call("c:1", "add", {{1, 2}, {3, 4}}), (std::vector<float>{4, 6})) << s.diag.msg;
        s.expect_cpu_computes();
      }
  } while (std::next_permutation(order.begin(), order.end()));
}

// The same of plugin files, whose verdicts name the file and what it said.
TEST(PublicReports, vulkan_loader_1467_the_verdict_names_the_failing_file_and_its_code) {
  std::vector<std::string> order = {"device", "device2", "devices_fail"};
  do {
    TempFolder t;
    std::string bad;
    for (size_t i = 0; i < order.size(); ++i) {
      const std::string file = t.add(order[i], std::to_string(i));
      if (order[i] == "devices_fail") bad = file;
    }
    Session s({t.path()});
    EXPECT_EQ(s.device_names().size(), 4u);
    for (const tn_plugin_entry& e : s.plugins()) {
      EXPECT_EQ(e.code, e.path == bad ? 19u : 0u) << e.path << ": " << e.cause;
      if (e.path != bad) continue;
      EXPECT_TRUE(has(e.cause, "the bus does not answer")) << e.cause;
      EXPECT_EQ(e.native_code, 42);
    }
    s.expect_cpu_computes();
  } while (std::next_permutation(order.begin(), order.end()));
}

// KhronosGroup/Vulkan-LoaderAndValidationLayers#2629: a driver found as /usr/share/x and /usr/share//x has its devices twice.
TEST(PublicReports, vulkan_loader_and_validation_layers_2629_one_file_found_many_ways_is_loaded_once) {
  TempFolder t;
  fs::create_directory(t / "dir");
  const std::string file = t / "dir/libtenon_backend_device.so";
  fs::copy_file(FIXTURE_DIR "/device.so", file);
  fs::create_directory_symlink("dir", t / "link");
  fs::create_directory(t / "more");
  fs::create_symlink("../dir/libtenon_backend_device.so", t / "more/libtenon_backend_link.so");
  fs::create_hard_link(file, t / "more/libtenon_backend_hard.so");
  fs::copy_file(file, t / "more/libtenon_backend_copy.so");
  const std::string dir = t / "dir";
  std::vector<std::string> ways = {dir, dir + "//", t.path() + "/./dir", dir + "/../dir", t.path() + "//dir/.", t / "link", t / "more", file, t / "link/libtenon_backend_device.so"};
  for (int turn = 0; turn < 2; ++turn) {
    std::reverse(ways.begin(), ways.end());
    Session s(ways);
    EXPECT_EQ(s.device_names(), (std::vector<std::string>{"cpu:0", "device:0"}));
    int used = 0;
    for (const tn_plugin_entry& e : s.plugins()) {
      if (e.path[0] == '\0') continue;
      used += e.code == 0;
      EXPECT_TRUE(e.code == 0 || e.code == 15) << e.path << ": " << e.code << " " << e.cause;
    }
    EXPECT_EQ(used, 1);
    for (const std::string& way : {file, dir + "//libtenon_backend_device.so", t / "link/libtenon_backend_device.so", t / "more/libtenon_backend_copy.so"})
      EXPECT_EQ(tn_plugin_load(s.rt, way.c_str(), nullptr, &s.diag), TN_E_EXISTS) << way;
    EXPECT_EQ(s.device_names().size(), 2u);
  }
}

// Two ways of finding files at once: the variable and the standard folder of the user.
TEST(PublicReports, vulkan_loader_and_validation_layers_2629_variable_and_standard_folder_meet_in_one_file) {
  TempFolder t;
  fs::create_directories(t / "data/tenon/plugins");
  fs::copy_file(FIXTURE_DIR "/device.so", t / "data/tenon/plugins/libtenon_backend_device.so");
  const pid_t child = fork();
  if (child == 0) {
    setenv("XDG_DATA_HOME", (t / "data").c_str(), 1);
    setenv("TENON_PLUGIN_PATH", ((t / "data/tenon//plugins") + ":" + (t / "data/../data/tenon/plugins/")).c_str(), 1);
    tn_runtime* rt = nullptr;
    uint32_t n = 0;
    if (tn_runtime_create(nullptr, &rt, nullptr) != TN_OK || tn_devices(rt, nullptr, 0, 0, &n, nullptr) != TN_OK) _exit(100);
    std::vector<tn_device_entry> all(n);
    for (auto& e : all) e.size = sizeof e;
    tn_devices(rt, all.data(), sizeof all[0], n, &n, nullptr);
    _exit(static_cast<int>(std::count_if(all.begin(), all.end(), [](const tn_device_entry& e) { return std::strncmp(e.name, "device:", 7) == 0; })));
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

// iree-org/iree#19223: a newer host calls an entry that an older plugin lacks. jax-ml/jax#22416: compatible ones are refused.
TEST(PublicReports, iree_19223_tables_of_other_versions_load_or_are_refused_alone) {
  struct Row { const char* fixture; uint32_t code; std::vector<std::string> words; };
  const Row rows[] = {{"short_table", 0, {}}, {"later", 0, {}}, {"size_huge", 0, {}}, {"next_major", 7, {"7.0", "7.3", "0.1"}}, {"size_zero", 17, {"table size 0"}},
                      {"too_short", 17, {"table size", "at least"}}, {"null_required", 17, {"quiesce"}}, {"partial", 17, {"wait"}}, {"other_abi", 17, {"asked for was 0.1"}}};
  for (const Row& row : rows) {
    TempFolder t;
    t.add("device", "a");
    const std::string file = t.add(row.fixture, "m");
    t.add("device2", "z");
    Session s({t.path()});
    const tn_plugin_entry e = s.of_file("m");
    EXPECT_EQ(e.code, row.code) << row.fixture << ": " << e.cause;
    EXPECT_EQ(e.path, file);
    for (const std::string& word : row.words) EXPECT_TRUE(has(e.cause, word)) << row.fixture << ": " << e.cause;
    EXPECT_EQ(s.device_names(), (std::vector<std::string>{"cpu:0", "device2:0", "device2:1", "device:0"})) << row.fixture;
    s.expect_cpu_computes();
  }
}

TEST(PublicReports, iree_19223_an_absent_entry_is_unsupported_and_never_called) {
  FakeDriver old("org.example.old", {{}});  // no caps, iface, ops, import, export, timelines
  Session s;
  ASSERT_EQ(old.link(s.rt), TN_OK);
  uint32_t device = 0, n = 7;
  ASSERT_EQ(tn_device_find(s.rt, "old:0", TN_POLICY_REQUIRE, &device, &s.diag), TN_OK) << s.diag.msg;
  EXPECT_EQ(tn_caps(s.rt, device, nullptr, 0, &n, &s.diag), TN_OK);
  EXPECT_EQ(n, 0u);
  uint64_t handle = 0;
  tn_queue* queue = nullptr;
  ASSERT_EQ(tn_queue_get(s.rt, device, &queue, &s.diag), TN_OK);
  for (uint32_t what : {0u, 1u}) EXPECT_EQ(tn_native_handle(s.rt, device, what, queue, &handle, &s.diag), TN_E_UNSUPPORTED);
  tn_point point{};
  tn_queue_point(queue, &point);
  EXPECT_EQ(tn_wait(s.rt, &point, 1, TN_FOREVER, &s.diag), TN_OK);
  EXPECT_EQ(s.call("old:0", "mul", {{2, 3}, {4, 5}}), (std::vector<float>{8, 15})) << s.diag.msg;
}

// torch-spyre/torch-spyre#3659, tensorflow/tensorflow#53427: every failure gets one generic sentence, and stops the host.
TEST(PublicReports, torch_spyre_3659_every_failing_file_has_its_own_cause_and_the_host_runs) {
  TempFolder t;
  struct Row { const char* name; uint32_t code; const char* words; };
  const Row rows[] = {{"undefined", 10, "undefined symbol: tenon_test_symbol_that_nobody_defines"}, {"missing_dep", 9, "libtenon_fixture_dep.so"},
                      {"unavailable", 18, "libdriver.so.7 is absent"}, {"open_error", 19, "the firmware does not answer"}, {"no_symbol", 13, "tn_plugin_query"},
                      {"text", 5, "begins with \"this\""}, {"empty", 4, "0 bytes"}, {"elf32", 6, "32"}, {"aarch64", 6, "aarch64"}, {"folder", 2, "directory"}, {"shut", 3, "Permission denied"}};
  for (const char* fixture : {"undefined", "missing_dep", "unavailable", "open_error", "no_symbol"}) t.add(fixture, fixture);
  t.write("libtenon_backend_text.so", "this is text\n");
  t.write("libtenon_backend_empty.so", "");
  std::ifstream file(FIXTURE_DIR "/good.so", std::ios::binary);
  std::string whole(std::istreambuf_iterator<char>(file), {}), narrow = whole;
  narrow[4] = 1;                         // ELFCLASS32
  whole[18] = static_cast<char>(0xB7);   // EM_AARCH64
#if defined(__aarch64__)
  whole[18] = 0x3E;                      // EM_X86_64
#endif
  t.write("libtenon_backend_elf32.so", narrow);
  t.write("libtenon_backend_aarch64.so", whole);
  fs::create_directory(t / "libtenon_backend_folder.so");
  chmod(t.add("good", "shut").c_str(), 0);
  const int wrong = as_unprivileged([&] {
    Session s({t.path()});
    std::set<std::string> causes;
    for (const Row& row : rows) {
      const tn_plugin_entry e = s.of_file(row.name);
      EXPECT_EQ(e.code, row.code) << row.name << ": " << e.cause;
      EXPECT_TRUE(has(e.cause, row.words)) << row.name << ": " << e.cause;
      EXPECT_TRUE(causes.insert(e.cause).second) << "twice: " << e.cause;
    }
    s.expect_cpu_computes();
    return testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(wrong, 0);
}

// microsoft/onnxruntime#5384, #24539: static objects of a plugin call a library that is gone; loading again meets the old state.
TEST(PublicReports, onnxruntime_5384_a_destructor_that_calls_the_host_late_is_found_by_the_trial) {
  Session s;
  EXPECT_NE(tn_plugin_load(s.rt, FAULT_DIR "/late_exit.so", nullptr, &s.diag), TN_OK);
  EXPECT_EQ(s.plugins().back().code, 11u);
  EXPECT_TRUE(has(s.plugins().back().cause, "SIGSEGV in exit")) << s.plugins().back().cause;
  s.expect_cpu_computes();
}

TEST(PublicReports, onnxruntime_5384_a_destructor_that_calls_the_host_late_ends_nothing) {
  for (const bool unload : {true, false}) {
    const pid_t child = fork();
    if (child == 0) {
      setenv("TENON_CONFIG", "loader.probe=off", 1);
      Session* s = new Session;
      uint32_t index = 0;
      if (tn_plugin_load(s->rt, FAULT_DIR "/late_exit.so", &index, &s->diag) != TN_OK) _exit(100);
      if (unload && tn_plugin_unload(s->rt, index, TN_FOREVER, &s->diag) != TN_OK) _exit(101);
      s->expect_cpu_computes();
      delete s;
      exit(testing::Test::HasFailure() ? 102 : 7);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << (unload ? "unloaded, " : "") << "status " << status;
  }
}

TEST(PublicReports, onnxruntime_5384_exit_from_any_thread_while_a_tensor_lives_keeps_the_status) {
  for (const char* plugin : {"/good.so", "/late_exit.so"})
    for (const bool from_worker : {false, true}) {
      const pid_t child = fork();
      if (child == 0) {
        setenv("TENON_CONFIG", "loader.probe=off", 1);
        static Session* s = nullptr;
        s = new Session;  // never ended
        if (tn_plugin_load(s->rt, (std::string(FAULT_DIR) + plugin).c_str(), nullptr, &s->diag) != TN_OK) _exit(100);
        const std::string device = s->devices().back().name;
        static std::vector<tn_tensor*> alive;  // static: no leak to a sanitizer
        alive.push_back(s->tensor(device, {1, 2, 3}));
        if (s->call(device, "add", {{1}, {2}}).size() != 1) _exit(101);
        if (from_worker) std::thread([] { exit(7); }).join();
        exit(7);
      }
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << plugin << " status " << status;
    }
}
