// Plugins are opened when somebody wants one of their devices, and not before: driver starts cost seconds (family F3, and
// llama.cpp#17266 - the device in use paid ten seconds for another).
#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>

#include "tests/devices/machine.h"

namespace {

constexpr uint32_t kProbeStage = 5, kStartStage = 9;

// The plugins have been tried, so that their devices are known from now on.
void first_start(const Machine& m) { Tenon once(m); }

}  // namespace

TEST(Lazy, a_plugin_is_not_opened_for_a_program_that_uses_the_cpu) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8 u=2,p=6600,m=8");
  first_start(m);
  m.watch();
  Tenon t(m);
  EXPECT_EQ(t.names(), "cpu:0 cuda:0 cuda:1");
  EXPECT_EQ(t.add_on(t.device("cpu:0").device), "");
  EXPECT_EQ(t.find("cpu"), "cpu:0");
  EXPECT_EQ(m.count("cuda constructor"), 0u);
  EXPECT_EQ(m.count("cuda open"), 0u);
}

TEST(Lazy, it_is_listed_as_ready_and_as_in_use_once_its_device_was_asked_for) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8");
  first_start(m);
  m.watch();
  Tenon t(m);
  tn_plugin_entry before = t.plugin("cuda");
  EXPECT_EQ(before.code, 0u);
  EXPECT_EQ(before.stage, kProbeStage);
  EXPECT_STREQ(before.cause, "not opened yet: that is done when one of its devices is asked for");
  const tn_device_entry known = t.device("cuda:0");
  EXPECT_EQ(known.verdict, 0u);
  EXPECT_EQ(known.info.mem_total_bytes, uint64_t{8} << 30);
  EXPECT_EQ(known.info.mem_free_bytes, 0u);  // not asked for: unknown
  EXPECT_STREQ(known.info.name, "Fake u=1,p=6500,m=8");
  EXPECT_EQ(t.find("cuda:0"), "cuda:0");
  EXPECT_EQ(m.count("cuda open"), 1u);
  const tn_plugin_entry after = t.plugin("cuda");
  EXPECT_EQ(after.code, 0u);
  EXPECT_EQ(after.stage, kStartStage);
  EXPECT_STREQ(after.cause, "");
  EXPECT_EQ(after.index, before.index);
  const tn_device_entry opened = t.device("cuda:0");
  EXPECT_EQ(opened.device, known.device);
  EXPECT_EQ(opened.info.mem_free_bytes, uint64_t{4} << 30);
  EXPECT_EQ(t.add_on(opened.device), "");
}

TEST(Lazy, every_way_of_asking_for_the_device_opens_it) {
  const auto ways = std::vector<std::pair<std::string, std::function<tn_status(Tenon&, uint32_t)>>>{
      {"queue", [](Tenon& t, uint32_t d) { tn_queue* q; return tn_queue_get(t.rt, d, &q, &t.diag); }},
      {"caps", [](Tenon& t, uint32_t d) { uint32_t n; return tn_caps(t.rt, d, nullptr, 0, &n, &t.diag); }},
      {"memory", [](Tenon& t, uint32_t d) { tn_memory_info i{}; i.size = sizeof i; return tn_memory_stats(t.rt, d, &i, &t.diag); }},
      {"why", [](Tenon& t, uint32_t d) {
         tn_type f32{};
         f32.dtype = TN_F32, f32.rank = 1, f32.dim[0] = 4, f32.stride[0] = 1;
         uint32_t op = 0, type = 0, n = 0;
         tn_op_find(t.rt, "add", 0, &op, nullptr), tn_type_intern(t.rt, &f32, &type, nullptr);
         const uint32_t in[] = {type, type};
         const tn_spec spec{op, 0, d, 0, 2, 0, in};
         return tn_why(t.rt, &spec, nullptr, 0, 0, &n, &t.diag);
       }}};
  for (const auto& [name, ask] : ways) {
    Machine m;
    m.add("cuda", "u=1,p=6500,m=8");
    first_start(m);
    m.watch();
    Tenon t(m);
    EXPECT_EQ(ask(t, t.device("cuda:0").device), TN_OK) << name << ": " << t.diag.msg;
    EXPECT_EQ(m.count("cuda open"), 1u) << name;
    EXPECT_EQ(t.add_on(t.device("cuda:0").device), "") << name;
  }
}

TEST(Lazy, threads_that_ask_at_once_open_it_once) {
  for (int round = 0; round < 10; ++round) {
    Machine m;
    m.add("cuda", "u=1,p=6500,m=8 u=2,p=6600,m=8");
    first_start(m);
    m.watch();
    Tenon t(m);
    constexpr int kThreads = 6;
    std::barrier start(kThreads);
    std::atomic<int> good{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        uint32_t id = 0, n = 0;
        tn_diag diag{};
        diag.size = sizeof diag;
        std::vector<tn_device_entry> list(8);
        for (int k = 0; k < 20; ++k) tn_devices(t.rt, list.data(), sizeof list[0], 8, &n, nullptr);
        if (tn_device_find(t.rt, i % 2 ? "cuda:1" : "cuda:0", TN_POLICY_REQUIRE, &id, &diag) == TN_OK) ++good;
        tn_queue* q = nullptr;
        tn_queue_get(t.rt, id, &q, &diag);
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(good, kThreads);
    EXPECT_EQ(m.count("cuda open"), 1u);
  }
}

TEST(Lazy, a_plugin_that_fails_then_has_its_verdict_and_its_device_the_cause) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8");
  first_start(m);
  m.set("TENON_FAKE_FAIL", "cuda");
  Tenon t(m);
  EXPECT_EQ(t.device("cuda:0").verdict, 0u);
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(t.find("cuda:0"), "");
    EXPECT_EQ(t.diag.status, TN_E_UNAVAILABLE);
    EXPECT_STREQ(t.diag.msg, "device cuda:0 cannot be used\nwhy: libdriver.so.7 is absent\ntry: `tenon devices` lists usable ones");
  }
  EXPECT_EQ(t.plugin("cuda").code, 18u);
  EXPECT_STREQ(t.plugin("cuda").cause, "libdriver.so.7 is absent");
  EXPECT_EQ(t.names(), "cpu:0 cuda:0!");
  EXPECT_STREQ(t.device("cuda:0").cause, "libdriver.so.7 is absent");
  // The policies of choosing.md.
  EXPECT_EQ(t.find("cuda:0", TN_POLICY_PREFER), "cpu:0");
  EXPECT_NE(t.log.find("using cpu:0 instead of cuda:0 because: device cuda:0 cannot be used"), std::string::npos) << t.log;
  EXPECT_EQ(t.find("cuda,cpu", TN_POLICY_PREFER), "cpu:0");
  EXPECT_EQ(t.find("auto"), "cpu:0");
  EXPECT_EQ(t.add_on(t.device("cpu:0").device), "");
}

TEST(Lazy, auto_chooses_from_what_is_known_and_opens_the_chosen_only) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8 u=2,p=6600,m=24");
  m.add("hip", "u=3,p=300,m=16");
  m.add("vulkan", "u=4,p=200,m=64,integrated u=5,m=99,emulated");
  first_start(m);
  m.watch();
  {
    Tenon t(m);
    EXPECT_EQ(t.find("auto"), "cuda:1");
    EXPECT_EQ(m.count("cuda open"), 1u);
    EXPECT_EQ(m.count("hip open"), 0u);
    EXPECT_EQ(m.count("vulkan open"), 0u);
  }
  m.set("TENON_FAKE_FAIL", "cuda");
  Tenon t(m);
  EXPECT_EQ(t.find("auto"), "hip:0");
  EXPECT_EQ(m.count("vulkan open"), 0u);
}

TEST(Lazy, chooses_what_eager_opening_chooses) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8 u=2,p=6600,m=24");
  m.add("vulkan", "u=1,p=6500,m=8 u=2,p=6600,m=24");
  m.add("vulkan2", "u=1,p=6500,m=8");
  m.add("mixed", "m=1");
  first_start(m);
  std::vector<std::string> seen[2];
  for (const bool all : {true, false}) {
    m.set("TENON_CONFIG", all ? "loader.open=all" : "loader.open=asked");
    Tenon t(m);
    EXPECT_EQ(t.plugin("cuda").stage, all ? kStartStage : kProbeStage);
    std::vector<std::string>& lines = seen[all];
    for (const char* spec : {"auto", "vulkan", "cuda:1", "cuda:7,vulkan:1", "mixed"}) lines.push_back(t.find(spec, TN_POLICY_PREFER));
    for (const tn_device_entry& e : t.devices()) lines.push_back(std::string(e.name) + " " + std::to_string(e.device) + " of " + std::to_string(e.physical) + " plugin " + std::to_string(e.plugin));
    for (const char* name : {"cpu:0", "cuda:0", "vulkan:1", "vulkan2:0", "mixed:0"}) {
      for (const char* op_name : {"add", "mul", "copy", "exp"}) {
        tn_type f32{};
        f32.dtype = TN_F32, f32.rank = 1, f32.dim[0] = 64, f32.stride[0] = 1;
        uint32_t op = 0, type = 0, n = 0;
        tn_op_find(t.rt, op_name, 0, &op, nullptr), tn_type_intern(t.rt, &f32, &type, nullptr);
        const uint32_t in[] = {type, type};
        const tn_spec spec{op, 0, t.device(name).device, 0, op_name[0] == 'a' || op_name[0] == 'm' ? 2u : 1u, 0, in};
        std::vector<tn_candidate> rows(64);
        for (tn_candidate& row : rows) row.size = sizeof row;
        std::string line = std::string(name) + " " + op_name;
        if (tn_why(t.rt, &spec, rows.data(), sizeof rows[0], 64, &n, nullptr) == TN_OK)
          for (uint32_t i = 0; i < n; ++i)
            if (rows[i].why != TN_WHY_DEVICE) line += std::string(" ") + rows[i].kernel + ":" + std::to_string(rows[i].why);
        lines.push_back(line);
      }
    }
  }
  EXPECT_EQ(seen[0], seen[1]);
}

TEST(Lazy, plugins_that_share_a_kind_of_device_are_opened_together) {
  Machine m;
  m.add("vulkan", "u=1,p=6500,m=8");
  m.add("vulkan2", "u=2,p=6600,m=8");
  m.add("cuda", "u=1,p=6500,m=8");
  first_start(m);
  m.watch();
  Tenon t(m);
  EXPECT_EQ(t.find("vulkan2"), "vulkan2:0");
  EXPECT_EQ(m.count("vulkan open"), 1u);  // its kernel may serve vulkan2:0
  EXPECT_EQ(m.count("cuda open"), 0u);
}

TEST(Lazy, a_plugin_that_has_more_to_offer_than_devices_is_opened_at_the_start) {
  Machine m;
  m.add("mixed", "m=1");  // one of its kernels is for CPUs
  first_start(m);
  m.watch();
  Tenon t(m);
  EXPECT_EQ(m.count("mixed open"), 1u);
  EXPECT_EQ(t.plugin("mixed").stage, kStartStage);
}

TEST(Lazy, the_first_start_and_one_without_a_cache_open_everything) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8");
  {
    Tenon t(m);
    EXPECT_EQ(t.plugin("cuda").stage, kStartStage);
  }
  for (const char* config : {"loader.cache=off", "loader.probe=off", "loader.open=all"}) {
    m.set("TENON_CONFIG", config);
    Tenon t(m);
    EXPECT_EQ(t.plugin("cuda").stage, kStartStage) << config;
    EXPECT_EQ(t.names(), "cpu:0 cuda:0");
  }
}

TEST(Lazy, a_plugin_that_says_something_else_than_when_it_was_tried_is_taken_at_its_word_and_remembered) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8 u=2,p=6600,m=8");
  first_start(m);
  m.add("cuda", "u=3,p=6500,m=4");  // one card less, and another in its place
  {
    Tenon t(m);
    EXPECT_EQ(t.names(), "cpu:0 cuda:0 cuda:1");
    const uint32_t first = t.device("cuda:0").device;
    EXPECT_EQ(t.find("cuda:0"), "cuda:0");
    EXPECT_EQ(t.names(), "cpu:0 cuda:0 cuda:1!");
    EXPECT_EQ(t.device("cuda:0").device, first);
    EXPECT_EQ(t.device("cuda:0").info.mem_total_bytes, uint64_t{4} << 30);
    EXPECT_STREQ(t.device("cuda:1").cause, "its plugin reports it no more");
    EXPECT_EQ(t.plugin("cuda").code, 0u);
    EXPECT_STREQ(t.plugin("cuda").cause, "it reports 1 device, its last trial gave 2");
    EXPECT_EQ(t.find("cuda:1"), "");
    EXPECT_EQ(t.add_on(t.device("cuda:0").device), "");
  }
  m.watch();
  Tenon t(m);
  EXPECT_EQ(t.names(), "cpu:0 cuda:0");
  EXPECT_EQ(m.count("cuda open"), 0u);  // and tried no more
}

TEST(Lazy, more_devices_than_known_are_listed_behind_the_others) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8");
  m.add("hip", "u=3,p=300,m=16");
  first_start(m);
  m.add("cuda", "u=1,p=6500,m=8 u=2,p=6600,m=8");
  Tenon t(m);
  EXPECT_EQ(t.names(), "cpu:0 cuda:0 hip:0");
  t.find("cuda:0");
  EXPECT_EQ(t.names(), "cpu:0 cuda:0 hip:0 cuda:1");
  EXPECT_EQ(t.add_on(t.device("cuda:1").device), "");
}

TEST(Lazy, a_file_that_was_replaced_meanwhile_is_not_opened) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8");
  first_start(m);
  Tenon t(m);
  const std::string file = m.folder() + "/libtenon_backend_cuda.so";
  std::filesystem::rename(file, file + ".old");
  std::filesystem::copy_file(FAKE_DIR "/hip.so", file);
  EXPECT_EQ(t.find("cuda:0"), "");
  EXPECT_EQ(t.plugin("cuda").code, 16u);
  EXPECT_NE(std::string(t.diag.msg).find("was replaced while it was looked at"), std::string::npos) << t.diag.msg;
}

TEST(Lazy, unloading_a_plugin_that_was_not_opened_runs_none_of_its_code) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8");
  first_start(m);
  m.watch();
  Tenon t(m);
  const uint32_t index = t.plugin("cuda").index;
  ASSERT_EQ(tn_plugin_unload(t.rt, index, TN_FOREVER, &t.diag), TN_OK) << t.diag.msg;
  EXPECT_EQ(t.plugin("cuda").code, 22u);
  EXPECT_EQ(t.find("cuda:0"), "");
  EXPECT_NE(std::string(t.diag.msg).find("its plugin was unloaded"), std::string::npos);
  EXPECT_EQ(m.count("cuda constructor"), 0u);
  uint32_t again = 0;
  ASSERT_EQ(tn_plugin_load(t.rt, (m.folder() + "/libtenon_backend_cuda.so").c_str(), &again, &t.diag), TN_OK) << t.diag.msg;
  EXPECT_EQ(again, index);
  EXPECT_EQ(t.find("cuda:0"), "cuda:0");
  EXPECT_EQ(t.add_on(t.device("cuda:0").device), "");
}

TEST(Lazy, a_second_file_of_a_plugin_that_was_not_opened_is_a_duplicate) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8");
  first_start(m);
  const std::string copy = m.folder() + "/libtenon_backend_zz.so";
  std::filesystem::copy_file(FAKE_DIR "/cuda.so", copy);
  Tenon t(m);
  EXPECT_EQ(t.names(), "cpu:0 cuda:0");
  EXPECT_EQ(tn_plugin_load(t.rt, copy.c_str(), nullptr, &t.diag), TN_E_EXISTS) << t.diag.msg;
}

TEST(Lazy, a_plugin_whose_driver_is_absent_is_started_in_its_trial_alone_and_not_again_for_ten_minutes) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8");
  m.set("TENON_FAKE_FAIL", "cuda");
  m.watch();
  const auto words = [&] {
    Tenon t(m);
    const tn_plugin_entry e = t.plugin("cuda");
    EXPECT_EQ(e.code, 18u);  // open-unavailable
    EXPECT_EQ(t.names(), "cpu:0");
    return std::string(e.cause);
  };
  const std::string first = words();
  EXPECT_EQ(m.count("cuda open"), 1u) << "in the child; not once more in this process";
  EXPECT_EQ(words(), first);
  EXPECT_EQ(m.count("cuda open"), 1u);
  const auto older = [&](int minutes) {
    for (const auto& file : std::filesystem::directory_iterator(m / "cache/tenon/probe"))
      std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(minutes));
  };
  older(3);
  EXPECT_EQ(words(), first + "; as it said 3 min ago");
  EXPECT_EQ(m.count("cuda open"), 1u);
  older(11);
  EXPECT_EQ(words(), first);
  EXPECT_EQ(m.count("cuda open"), 2u);
}

TEST(Lazy, a_driver_that_comes_is_found_once_the_answer_is_old_or_forgotten) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8");
  m.set("TENON_FAKE_FAIL", "cuda");
  first_start(m);
  m.unset("TENON_FAKE_FAIL");
  EXPECT_EQ(Tenon(m).names(), "cpu:0");
  m.set("TENON_CONFIG", "loader.forget=test.cuda");
  EXPECT_EQ(Tenon(m).names(), "cpu:0 cuda:0");
}

TEST(Lazy, listing_and_choosing_go_on_in_other_threads_while_a_plugin_says_something_new) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8 u=2,p=6600,m=8");
  first_start(m);
  m.add("cuda", "u=3,p=6500,m=4,integrated");
  Tenon t(m);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      std::vector<tn_device_entry> list(8);
      uint32_t n = 0, id = 0;
      while (!done) {
        if (i == 0) tn_devices(t.rt, list.data(), sizeof list[0], 8, &n, nullptr);
        if (i == 1) tn_device_find(t.rt, "cpu:0", TN_POLICY_REQUIRE, &id, nullptr);
        if (i == 2) tn_device_find(t.rt, "cuda:1", TN_POLICY_PREFER, &id, nullptr);
      }
    });
  EXPECT_EQ(t.find("cuda:0"), "cuda:0");
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(t.names(), "cpu:0 cuda:0 cuda:1!");
}
