// libtenon.so from outside: what an app sees of good, bad and missing plugins (the fault kinds of docs/reports.md).
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <tenon/runtime.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <cstring>
#include <map>

#include "loader/sha256.h"
#include "tests/loader/temp_folder.h"

namespace fs = std::filesystem;

extern "C" const tn_plugin* fixture_linked_query(uint32_t, const tn_host*) { return nullptr; }

namespace {

// A runtime that looks into the given folders only.
class Tenon {
 public:
  explicit Tenon(std::vector<std::string> folders, uint32_t flags = 0, uint32_t trust = 0, std::vector<std::string> allow = {}) {
    std::vector<const char*> paths, allowed;
    for (const std::string& f : folders) paths.push_back(f.c_str());
    for (const std::string& a : allow) allowed.push_back(a.c_str());
    tn_runtime_options options{};
    options.size = sizeof options;
    options.flags = flags;
    options.paths = paths.data();
    options.n_paths = static_cast<uint32_t>(paths.size());
    options.threads = 1;
    options.trust = trust;
    options.allow = allowed.data();
    options.n_allow = static_cast<uint32_t>(allowed.size());
    diag.size = sizeof diag;
    status = tn_runtime_create(&options, &rt, &diag);
  }
  ~Tenon() { EXPECT_EQ(tn_runtime_destroy(rt, TN_FOREVER, &diag), TN_OK) << diag.msg; }
  Tenon(const Tenon&) = delete;
  Tenon& operator=(const Tenon&) = delete;

  std::vector<tn_plugin_entry> entries() {
    uint32_t n = 0;
    EXPECT_EQ(tn_plugins(rt, nullptr, 0, 0, &n, nullptr), TN_OK);
    std::vector<tn_plugin_entry> list(n);
    EXPECT_EQ(tn_plugins(rt, list.data(), sizeof list[0], n, &n, nullptr), TN_OK);
    return list;
  }
  // By file name without "libtenon_backend_" and ".so".
  std::map<std::string, tn_plugin_entry> by_name() {
    std::map<std::string, tn_plugin_entry> map;
    for (const tn_plugin_entry& e : entries()) {
      std::string name = fs::path(e.path).stem().string();
      if (name.starts_with("libtenon_backend_")) map[name.substr(17)] = e;
    }
    return map;
  }
  std::vector<std::string> device_names() {
    uint32_t n = 0;
    tn_devices(rt, nullptr, 0, 0, &n, nullptr);
    std::vector<tn_device_entry> list(n);
    for (auto& e : list) e.size = sizeof e;
    tn_devices(rt, list.data(), sizeof list[0], n, &n, nullptr);
    std::vector<std::string> names;
    for (auto& e : list) names.emplace_back(e.name);
    return names;
  }

  tn_runtime* rt = nullptr;
  tn_diag diag{};
  tn_status status = TN_OK;
};

// Lines that fixture plugins leave when any of their code runs in this process: none is tried in a child meanwhile.
class Trace {
 public:
  Trace() {
    setenv("TENON_FIXTURE_TRACE", (folder_ / "trace").c_str(), 1);
    setenv("TENON_CONFIG", "loader.probe=off", 1);
  }
  ~Trace() {
    unsetenv("TENON_FIXTURE_TRACE");
    unsetenv("TENON_CONFIG");
  }
  std::string text() const {
    std::ifstream file(folder_ / "trace");
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  TempFolder folder_;
};

// Results of probes go into a folder of this run.
class OwnCache : public testing::Environment {
 public:
  void SetUp() override { setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }

 private:
  TempFolder folder_;
};
const auto* own_cache = testing::AddGlobalTestEnvironment(new OwnCache);

}  // namespace

TEST(Boot, without_any_plugin_file_has_the_linked_reference_plugin) {
  TempFolder t;
  Tenon tenon({t.path()});
  ASSERT_EQ(tenon.status, TN_OK) << tenon.diag.msg;
  ASSERT_EQ(tenon.entries().size(), 1u);
  EXPECT_STREQ(tenon.entries()[0].id, "dev.tenon.cpu");
  EXPECT_EQ(tenon.entries()[0].code, 0u);
  EXPECT_EQ(tenon.device_names(), (std::vector<std::string>{"cpu:0"}));
}

TEST(Boot, takes_null_options_and_options_of_any_size) {
  char space[sizeof(tn_runtime_options) + 64] = {};
  for (uint32_t size : {0u, 4u, 8u, 24u, static_cast<uint32_t>(sizeof(tn_runtime_options)), static_cast<uint32_t>(sizeof space), UINT32_MAX}) {
    auto* options = reinterpret_cast<tn_runtime_options*>(space);
    options->size = size;
    options->flags = size >= 8 ? uint32_t{TN_RT_NO_SEARCH} : 0;
    tn_runtime* rt = nullptr;
    ASSERT_EQ(tn_runtime_create(options, &rt, nullptr), TN_OK) << size;
    EXPECT_EQ(tn_runtime_destroy(rt, TN_FOREVER, nullptr), TN_OK);
  }
}

TEST(Boot, with_no_search_looks_at_no_file) {
  TempFolder t;
  t.add("good", "good");
  Tenon tenon({t.path()}, TN_RT_NO_SEARCH);
  EXPECT_EQ(tenon.entries().size(), 1u);
}

TEST(Boot, refuses_options_it_cannot_keep) {
  tn_diag diag{};
  tn_runtime* rt = nullptr;
  tn_runtime_options options{};
  options.size = sizeof options;
  options.trust = TN_TRUST_ENFORCE + 1;
  EXPECT_EQ(tn_runtime_create(&options, &rt, &diag), TN_E_UNSUPPORTED);
  options.trust = 0;
  options.n_paths = 1;
  EXPECT_EQ(tn_runtime_create(&options, &rt, &diag), TN_E_ARG);
  options.n_paths = 0;
  const tn_ext critical{sizeof critical, TN_EXT_CRITICAL | 7, nullptr}, harmless{sizeof harmless, 7, nullptr};
  tn_ext loop{sizeof loop, 9, nullptr};
  loop.next = &loop;
  options.next = &critical;
  EXPECT_EQ(tn_runtime_create(&options, &rt, &diag), TN_E_EXT);
  EXPECT_NE(std::strstr(diag.msg, "0x80000007"), nullptr) << diag.msg;
  options.next = &loop;
  EXPECT_EQ(tn_runtime_create(&options, &rt, &diag), TN_E_ARG);
  EXPECT_EQ(tn_runtime_create(&options, nullptr, &diag), TN_E_ARG);
  EXPECT_EQ(rt, nullptr);
  options.next = &harmless;
  ASSERT_EQ(tn_runtime_create(&options, &rt, &diag), TN_OK);
  tn_runtime_destroy(rt, TN_FOREVER, nullptr);
}

TEST(Boot, refuses_a_malformed_configuration_variable) {
  setenv("TENON_CONFIG", "sim.devices", 1);
  TempFolder t;
  tn_diag diag{};
  tn_runtime* rt = nullptr;
  EXPECT_EQ(tn_runtime_create(nullptr, &rt, &diag), TN_E_ARG);
  unsetenv("TENON_CONFIG");
  EXPECT_NE(std::strstr(diag.msg, "\"sim.devices\" is not of the form key=value"), nullptr) << diag.msg;
}

TEST(Plugins, of_all_kinds_lie_side_by_side_and_each_has_its_own_verdict) {
  TempFolder t;
  t.add("device", "device");
  t.add("good", "good");
  const std::map<std::string, uint32_t> want = {
      {"device", 0}, {"good", 0}, {"no_record", 1}, {"folder", 2}, {"pipe", 2}, {"empty", 4}, {"text", 5}, {"cut", 5}, {"arch", 6},
      {"wrong_target", 6}, {"next_major", 7}, {"cpu_need", 8}, {"missing_dep", 9}, {"undefined", 10}, {"no_symbol", 13}, {"query_null", 14},
      {"throwing", 14}, {"link", 15}, {"size_zero", 17}, {"null_required", 17}, {"partial", 17}, {"unavailable", 18},
      {"open_error", 19}, {"devices_fail", 19}, {"broken", 23}, {"short_table", 0}, {"later", 0}, {"size_huge", 0}};
  for (const auto& [name, code] : want) {
    if (fs::exists(std::string(FIXTURE_DIR "/") + name + ".so") && name != "device" && name != "good") t.add(name, name);
  }
  t.add("good", "good2");
  t.add("device", "z_copy");
  fs::create_symlink("libtenon_backend_good.so", t / "libtenon_backend_link.so");
  fs::create_symlink("nowhere", t / "libtenon_backend_broken.so");
  fs::create_directory(t / "libtenon_backend_folder.so");
  ASSERT_EQ(mkfifo((t / "libtenon_backend_pipe.so").c_str(), 0600), 0);
  t.write("libtenon_backend_empty.so", "");
  t.write("libtenon_backend_text.so", "this is text\n");
  std::ifstream file(FIXTURE_DIR "/good.so", std::ios::binary);
  std::string whole(std::istreambuf_iterator<char>(file), {});
  t.write("libtenon_backend_cut.so", whole.substr(0, 3000));
  whole[18] = static_cast<char>(0xF3);  // EM_RISCV
  t.write("libtenon_backend_arch.so", whole);

  Tenon tenon({t.path()});
  ASSERT_EQ(tenon.status, TN_OK) << tenon.diag.msg;
  auto have = tenon.by_name();
  for (const auto& [name, code] : want) {
    ASSERT_TRUE(have.count(name)) << name;
    EXPECT_EQ(have[name].code, code) << name << ": " << have[name].cause;
    EXPECT_EQ(have[name].cause[0] == '\0', code == 0) << name;
    EXPECT_NE(have[name].stage, 0u) << name;
  }
  EXPECT_EQ(have["good2"].code, 15u) << have["good2"].cause;
  EXPECT_EQ(have["z_copy"].code, 15u) << have["z_copy"].cause;
  EXPECT_EQ(tenon.device_names(), (std::vector<std::string>{"cpu:0", "device:0"}));
}

// torch-spyre/torch-spyre#3659, tensorflow/tensorflow#53427.
TEST(Plugins, torch_spyre_3659_keep_the_first_cause_word_for_word) {
  TempFolder t;
  t.add("undefined", "a");
  t.add("missing_dep", "b");
  t.add("unavailable", "c");
  Tenon tenon({t.path()});
  auto have = tenon.by_name();
  EXPECT_NE(std::strstr(have["a"].cause, "undefined symbol: tenon_test_symbol_that_nobody_defines"), nullptr) << have["a"].cause;
  EXPECT_NE(std::strstr(have["b"].cause, "libtenon_fixture_dep.so"), nullptr) << have["b"].cause;
  EXPECT_STREQ(have["c"].cause, "libdriver.so.7 is absent");
  EXPECT_EQ(have["c"].native_code, 42);
}

// KhronosGroup/Vulkan-LoaderAndValidationLayers#2629.
TEST(Plugins, vulkan_loader_and_validation_layers_2629_found_by_several_spellings_of_one_folder_are_loaded_once) {
  TempFolder t;
  fs::create_directory(t / "dir");
  fs::copy_file(FIXTURE_DIR "/device.so", t / "dir/libtenon_backend_device.so");
  const auto before = fs::current_path();
  fs::current_path(t.path());
  {
    Trace trace;
    Tenon tenon({"dir", "dir//", "./dir", "dir/../dir"});
    EXPECT_EQ(tenon.entries().size(), 2u);
    EXPECT_EQ(tenon.device_names().size(), 2u);
    const std::string text = trace.text();
    EXPECT_EQ(text.find("open"), text.rfind("open")) << text;
  }
  fs::current_path(before);
}

TEST(Plugins, refused_by_their_record_run_no_instruction) {
  Trace trace;
  for (const char* name : {"cpu_need", "wrong_target", "next_major"}) {
    TempFolder t;
    t.add(name, name);
    Tenon tenon({t.path()});
    EXPECT_NE(tenon.by_name()[name].code, 0u);
  }
  EXPECT_EQ(trace.text(), "");
  TempFolder t;
  t.add("good", "good");
  { Tenon tenon({t.path()}); }
  EXPECT_EQ(trace.text(), "test.good constructor\ntest.good query\ntest.good open\ntest.good quiesce\ntest.good close\n");
}

// ggml-org/llama.cpp PR #14286. The child process is on here: not even there a refused plugin runs.
TEST(Plugins, llama_cpp_14286_refused_before_they_are_opened_run_no_instruction_in_any_process) {
  TempFolder witness, t;
  for (const char* name : {"cpu_need", "wrong_target", "next_major", "good", "other", "device", "device2"}) t.add(name, name);
  t.add("good", "good_copy");
  fs::create_hard_link(t / "libtenon_backend_good.so", t / "libtenon_backend_good_link.so");
  chmod((t / "libtenon_backend_other.so").c_str(), 0666);
  setenv("TENON_FIXTURE_TRACE", (witness / "trace").c_str(), 1);
  {
    Tenon tenon({t.path()}, 0, TN_TRUST_OFF, {"test.another", "test.other", "test.cpu_need"});
    auto have = tenon.by_name();
    const std::map<std::string, uint32_t> want = {{"cpu_need", 8}, {"wrong_target", 6}, {"next_major", 7}, {"good", 20}, {"good_copy", 20},
                                                  {"good_link", 20}, {"other", 16}, {"device", 20}, {"device2", 20}};
    for (const auto& [name, code] : want) EXPECT_EQ(have[name].code, code) << name << ": " << have[name].cause;
  }
  EXPECT_FALSE(fs::exists(witness / "trace"));
  {
    Tenon tenon({t.path()});
    EXPECT_EQ(tenon.by_name()["good"].code, 0u);
    EXPECT_EQ(tenon.by_name()["good_copy"].code, 15u);
    EXPECT_NE(std::strstr(tenon.by_name()["good_copy"].cause, "libtenon_backend_good.so"), nullptr) << tenon.by_name()["good_copy"].cause;
    EXPECT_EQ(tenon.by_name()["good_link"].code, 15u);
  }
  unsetenv("TENON_FIXTURE_TRACE");
  EXPECT_TRUE(fs::exists(witness / "trace"));
}

TEST(Plugins, that_may_not_be_read_are_named_as_such) {
  TempFolder t;
  const std::string shut = t.add("good", "shut");
  t.add("other", "other");
  chmod(shut.c_str(), 0);
  const int result = as_unprivileged([&] {
    tn_runtime_options options{};
    const char* path = t.path().c_str();
    options.size = sizeof options;
    options.paths = &path;
    options.n_paths = 1;
    tn_runtime* rt = nullptr;
    if (tn_runtime_create(&options, &rt, nullptr) != TN_OK) return 100;
    tn_plugin_entry e[3] = {};
    uint32_t n = 0;
    tn_plugins(rt, e, sizeof e[0], 3, &n, nullptr);
    return n == 3 && e[1].code == 0 && e[2].code == 3 ? 0 : 101;
  });
  EXPECT_EQ(result, 0);
}

TEST(Plugins, are_kept_to_the_allow_list_later_ones_too) {
  TempFolder t;
  t.add("good", "good");
  t.add("other", "other");
  const char* path = t.path().c_str();
  const char* allow = "test.good";
  tn_runtime_options options{};
  options.size = sizeof options;
  options.paths = &path;
  options.n_paths = 1;
  options.allow = &allow;
  options.n_allow = 1;
  tn_runtime* rt = nullptr;
  ASSERT_EQ(tn_runtime_create(&options, &rt, nullptr), TN_OK);
  tn_plugin_entry e[3] = {};
  uint32_t n = 0;
  tn_plugins(rt, e, sizeof e[0], 3, &n, nullptr);
  EXPECT_EQ(e[1].code, 0u);
  EXPECT_EQ(e[2].code, 20u);
  EXPECT_EQ(tn_plugin_load(rt, FIXTURE_DIR "/device.so", nullptr, nullptr), TN_E_DENIED);
  EXPECT_EQ(tn_runtime_destroy(rt, TN_FOREVER, nullptr), TN_OK);
}

TEST(Plugins, are_kept_to_checksums) {
  TempFolder t;
  t.add("good", "good");
  t.add("other", "other");
  const std::string allow = "sha256:" + tenon::loader::sha256_text(bytes_of(FIXTURE_DIR "/other.so"));
  for (const uint32_t trust : {TN_TRUST_OFF, TN_TRUST_ENFORCE}) {
    Tenon tenon({t.path()}, 0, trust, {allow});
    ASSERT_EQ(tenon.status, TN_OK) << tenon.diag.msg;
    auto have = tenon.by_name();
    EXPECT_EQ(have["other"].code, 0u) << have["other"].cause;
    EXPECT_EQ(have["good"].code, 20u);
    EXPECT_NE(std::strstr(have["good"].cause, "sha256:"), nullptr) << have["good"].cause;
  }
}

TEST(Plugins, under_enforce_need_a_list_and_run_from_a_copy_that_nobody_can_change) {
  TempFolder t;
  const std::string file = t.add("good", "good");
  {
    Tenon tenon({t.path()}, 0, TN_TRUST_ENFORCE, {});
    EXPECT_EQ(tenon.by_name()["good"].code, 20u);
  }
  Tenon tenon({t.path()}, 0, TN_TRUST_ENFORCE, {"test.good"});
  ASSERT_EQ(tenon.by_name()["good"].code, 0u) << tenon.by_name()["good"].cause;
  std::ifstream maps("/proc/self/maps");
  const std::string mapped(std::istreambuf_iterator<char>(maps), {});
  EXPECT_NE(mapped.find("/memfd:tenon-plugin"), std::string::npos);
  EXPECT_EQ(mapped.find(file), std::string::npos);
}

TEST(Plugins, under_warn_are_used_and_the_verdict_says_what_is_wrong) {
  TempFolder t;
  const std::string file = t.add("good", "good");
  chmod(file.c_str(), 0666);
  {
    Tenon tenon({t.path()});
    EXPECT_EQ(tenon.by_name()["good"].code, 16u);
    EXPECT_STREQ(tenon.by_name()["good"].cause, (file + " can be written by everybody (mode 0666)").c_str());
  }
  Tenon tenon({t.path()}, 0, TN_TRUST_WARN, {"test.another"});
  EXPECT_EQ(tenon.by_name()["good"].code, 0u);
  const std::string cause = tenon.by_name()["good"].cause;
  EXPECT_NE(cause.find("used although untrusted: " + file), std::string::npos) << cause;
  EXPECT_NE(cause.find("used although not-allowed"), std::string::npos) << cause;
}

TEST(Plugins, opened_by_descriptor_one_after_another_are_told_apart) {
  TempFolder t;
  t.add("good", "a");
  t.add("other", "b");
  t.add("device", "c");
  Tenon tenon({t.path()}, 0, TN_TRUST_OFF, {"test.good", "test.other", "test.device"});
  auto have = tenon.by_name();
  EXPECT_STREQ(have["a"].id, "test.good");
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(have[name].code, 0u) << have[name].cause;
  EXPECT_EQ(tenon.device_names(), (std::vector<std::string>{"cpu:0", "device:0"}));
}

TEST(Boot, refuses_allow_lists_and_settings_that_mean_nothing) {
  TempFolder t;
  for (const char* entry : {"sha256:", "sha256:12", "", "a,b"}) {
    Tenon tenon({t.path()}, 0, TN_TRUST_OFF, {entry});
    EXPECT_EQ(tenon.status, TN_E_ARG) << entry;
    EXPECT_EQ(tenon.diag.id, 8u << 16 | 44u) << entry;
  }
  for (const char* config : {"loader.trust=yes", "loader.probe=1", "loader.probe_timeout_ms=0", "loader.probe_timeout_ms=9x", "loader.cache=here", "loader.colour=red"}) {
    setenv("TENON_CONFIG", config, 1);
    Tenon tenon({t.path()});
    unsetenv("TENON_CONFIG");
    EXPECT_EQ(tenon.status, TN_E_ARG) << config;
    EXPECT_EQ(tenon.diag.id, 8u << 16 | 45u) << config;
  }
}

TEST(Boot, names_relative_and_empty_entries_of_the_path_variable) {
  TempFolder t;
  t.add("good", "good");
  const auto before = fs::current_path();
  fs::current_path(t.path());
  setenv("TENON_PLUGIN_PATH", ":.", 1);
  {
    Tenon tenon({});
    size_t n = 0;
    for (const tn_plugin_entry& e : tenon.entries()) {
      EXPECT_STRNE(e.id, "test.good");
      n += e.code == 24;
    }
    EXPECT_EQ(n, 2u);
  }
  unsetenv("TENON_PLUGIN_PATH");
  fs::current_path(before);
}

TEST(Plugins, listed_into_smaller_structs_are_cut_and_never_overrun) {
  TempFolder t;
  Tenon tenon({t.path()});
  struct { uint32_t size, index, code, stage; char guard[16]; } small[2];
  std::memset(small, 0x5A, sizeof small);
  uint32_t n = 0;
  ASSERT_EQ(tn_plugins(tenon.rt, reinterpret_cast<tn_plugin_entry*>(small), 16, 1, &n, nullptr), TN_OK);
  EXPECT_EQ(small[0].size, 16u);
  EXPECT_EQ(small[0].guard[0], 0x5A);
  EXPECT_EQ(tn_plugins(tenon.rt, reinterpret_cast<tn_plugin_entry*>(small), 4, 1, &n, nullptr), TN_E_ABI);
}

TEST(Load, adds_one_file_and_unload_takes_it_away) {
  TempFolder t;
  Trace trace;
  Tenon tenon({t.path()});
  uint32_t index = 0;
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(tn_plugin_load(tenon.rt, FIXTURE_DIR "/other.so", &index, &tenon.diag), TN_OK) << tenon.diag.msg;
    ASSERT_EQ(tn_plugin_unload(tenon.rt, index, TN_FOREVER, &tenon.diag), TN_OK) << tenon.diag.msg;
    EXPECT_EQ(tenon.entries()[index].code, 22u);
  }
  EXPECT_EQ(tn_plugin_unload(tenon.rt, index, TN_FOREVER, &tenon.diag), TN_E_NOT_FOUND);
  EXPECT_EQ(tn_plugin_unload(tenon.rt, 99, TN_FOREVER, &tenon.diag), TN_E_NOT_FOUND);
  // Mapped anew each time: the record says that unmapping is safe.
  const std::string text = trace.text();
  size_t constructors = 0;
  for (size_t at = 0; (at = text.find("constructor", at)) != std::string::npos; ++at) ++constructors;
  EXPECT_EQ(constructors, 3u) << text;
}

TEST(Load, of_a_bad_file_says_what_why_and_what_to_do) {
  TempFolder t;
  Tenon tenon({t.path()});
  const std::string file = t.write("libtenon_backend_x.so", "hello");
  EXPECT_EQ(tn_plugin_load(tenon.rt, file.c_str(), nullptr, &tenon.diag), TN_E_IO);
  EXPECT_STREQ(tenon.diag.msg, "libtenon_backend_x.so: not an ELF shared library, or one that is cut short\n"
                               "why: begins with \"hell\", an ELF file with 7F \"ELF\"\n"
                               "try: remove it from the plugin folder, or install the plugin again");
  EXPECT_EQ(tenon.diag.id, 8u << 16 | 5u);
  EXPECT_EQ(tn_plugin_load(tenon.rt, (t / "absent.so").c_str(), nullptr, &tenon.diag), TN_E_NOT_FOUND);
  EXPECT_EQ(tn_plugin_load(tenon.rt, nullptr, nullptr, &tenon.diag), TN_E_ARG);
}

TEST(Load, of_a_plugin_in_use_is_a_duplicate) {
  TempFolder t;
  t.add("good", "good");
  Tenon tenon({t.path()});
  EXPECT_EQ(tn_plugin_load(tenon.rt, (t / "libtenon_backend_good.so").c_str(), nullptr, &tenon.diag), TN_E_EXISTS);
  EXPECT_EQ(tn_plugin_load(tenon.rt, FIXTURE_DIR "/good.so", nullptr, &tenon.diag), TN_E_EXISTS);
}

TEST(Link, goes_through_the_same_handshake) {
  TempFolder t;
  Tenon tenon({t.path()});
  EXPECT_EQ(tn_plugin_link(tenon.rt, "test.linked", fixture_linked_query, nullptr, &tenon.diag), TN_E_ABI);
  EXPECT_EQ(tenon.entries().back().code, 14u);
  EXPECT_EQ(tn_plugin_link(tenon.rt, "dev.tenon.cpu", fixture_linked_query, nullptr, &tenon.diag), TN_E_EXISTS);
  EXPECT_EQ(tn_plugin_link(tenon.rt, "test.linked", nullptr, nullptr, &tenon.diag), TN_E_ARG);
}

#if defined(__x86_64__)
TEST(Boot, leaves_the_floating_point_environment_as_it_was) {
  TempFolder t;
  t.add("ftz", "ftz");
  Tenon tenon({t.path()});
  ASSERT_EQ(tenon.by_name()["ftz"].code, 0u);
  volatile double denormal = 1e-323;
  volatile float small = 1e-40f;
  EXPECT_TRUE(denormal * 1.0 != 0.0);
  EXPECT_EQ(small * 1.0f, small);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}
#endif

TEST(Process, that_exits_without_ending_the_runtime_calls_no_plugin) {
  TempFolder t;
  t.add("good", "good");
  Trace trace;
  const pid_t child = fork();
  if (child == 0) {
    const char* path = t.path().c_str();
    tn_runtime_options options{};
    options.size = sizeof options;
    options.paths = &path;
    options.n_paths = 1;
    tn_runtime* rt = nullptr;
    tn_runtime_create(&options, &rt, nullptr);
    exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(trace.text(), "test.good constructor\ntest.good query\ntest.good open\n");
}
