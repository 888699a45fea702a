// Public reports about which device is used, what is said of devices, and how they are named.
#include <unistd.h>

#include <cstring>
#include <memory>
#include <set>

#include "tests/reports/fake_driver.h"
#include "tests/reports/session.h"

namespace {

const std::vector<std::vector<float>> kTwo = {{1, 2}, {3, 4}};

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& n : names) text += (text.empty() ? "" : ",") + n;
  return text;
}

}  // namespace

// microsoft/onnxruntime#23372, #17801: a device asked for by name cannot be had, and the work goes to the CPU unsaid.
TEST(PublicReports, onnxruntime_23372_a_device_that_cannot_be_had_is_an_error_with_its_cause) {
  struct Row { const char* stage; const char* words; };
  for (const Row& row : {Row{"open", "libgpu.so.1 is absent"}, Row{"list devices", "the bus does not answer"}, Row{"device open", "no permission for /dev/gpu0"}}) {
    for (const tn_status status : {TN_E_UNAVAILABLE, TN_E_FAILED, TN_E_DENIED, TN_E_OOM}) {
      FakeDriver gpu("org.example.gpu", {{}});
      gpu.fail(row.stage, status, row.words);
      Session s;
      gpu.link(s.rt);
      for (const char* spec : {"gpu:0", "gpu"}) {
        EXPECT_EQ(s.find(spec, TN_POLICY_REQUIRE), "") << row.stage;
        EXPECT_TRUE(has(s.diag.msg, row.words)) << row.stage << " " << status << ": " << s.diag.msg;
      }
      EXPECT_EQ(s.find("gpu:0", TN_POLICY_PREFER), "cpu:0");
      EXPECT_TRUE(has(s.log, "using cpu:0 instead of gpu:0 because") && has(s.log, row.words)) << s.log;
      Session strict({}, TN_POLICY_REQUIRE);
      gpu.link(strict.rt);
      EXPECT_EQ(strict.find("gpu:0", TN_POLICY_PREFER), "") << "a runtime that forbids fallback forbids this one too";
    }
  }
}

TEST(PublicReports, onnxruntime_23372_an_unknown_device_is_no_other_device) {
  Session s;
  EXPECT_EQ(s.find("cuda:0", TN_POLICY_REQUIRE), "");
  EXPECT_EQ(s.status, TN_E_NOT_FOUND);
  EXPECT_TRUE(has(s.diag.msg, "cuda:0")) << s.diag.msg;
  EXPECT_EQ(s.find("cuda:0", TN_POLICY_PREFER), "cpu:0");
  EXPECT_TRUE(has(s.log, "using cpu:0 instead of cuda:0 because")) << s.log;
}

// One op of five has no kernel on the device.
TEST(PublicReports, onnxruntime_17801_an_op_that_runs_elsewhere_is_an_error_or_an_event_with_the_cause) {
  for (const uint32_t policy : {TN_POLICY_PREFER, TN_POLICY_REQUIRE}) {
    FakeDriver gpu("org.example.gpu", {{}});
    Session s({}, policy);
    ASSERT_EQ(gpu.link(s.rt), TN_OK);
    for (const char* op : {"add", "sub", "mul", "maximum"}) EXPECT_EQ(s.call("gpu:0", op, kTwo).size(), 2u) << op << ": " << s.diag.msg;
    EXPECT_EQ(gpu.launches[0], 4u);
    EXPECT_TRUE(s.fallbacks.empty());
    const uint32_t gpu_id = s.ran_on[0];
    EXPECT_EQ(s.name_of(gpu_id), "gpu:0");

    s.ran_on.clear();
    const auto exp = s.call("gpu:0", "exp", {{0, 0}});
    EXPECT_EQ(gpu.launches[0], 4u);
    if (policy == TN_POLICY_PREFER) {
      EXPECT_EQ(exp, (std::vector<float>{1, 1})) << s.diag.msg;
      ASSERT_EQ(s.fallbacks.size(), 1u);
      EXPECT_TRUE(s.fallbacks[0].starts_with("exp: ") && has(s.fallbacks[0], "the fake has no such unit")) << s.fallbacks[0];
      for (const uint32_t device : s.ran_on) EXPECT_EQ(s.name_of(device), "cpu:0");
    }
    if (policy == TN_POLICY_REQUIRE) { EXPECT_TRUE(exp.empty()); }
    EXPECT_TRUE(s.call("gpu:0", "exp", {{0, 0}}, TN_CALL_REQUIRE).empty()) << "a call can forbid it for itself";
    EXPECT_TRUE(has(s.diag.msg, "the fake has no such unit")) << s.diag.msg;
  }
}

// microsoft/onnxruntime#27006, #25145: of the list A, B, CPU the first fails to start, and the second is never tried.
TEST(PublicReports, onnxruntime_27006_a_list_of_preference_is_walked_in_order) {
  std::vector<std::string> order = {"a", "b", "c", "cpu"};
  do {
    for (unsigned broken = 0; broken < 8; ++broken)
      for (const char* stage : {"open", "list devices", "device open"}) {
        FakeDriver a("org.example.a", {{}}), b("org.example.b", {{}}), c("org.example.c", {{}});
        Session s;
        FakeDriver* const all[] = {&a, &b, &c};
        for (unsigned i = 0; i < 3; ++i) {
          if (broken >> i & 1) all[i]->fail(stage, TN_E_UNAVAILABLE, "it does not start");
          all[i]->link(s.rt);
        }
        std::string first = "cpu";
        for (const std::string& name : order)
          if (name == "cpu" || !(broken >> (name[0] - 'a') & 1)) { first = name; break; }
        EXPECT_EQ(s.find(joined(order)), first + ":0") << joined(order) << " broken " << broken << " at " << stage;
      }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(PublicReports, onnxruntime_27006_a_device_that_was_lost_at_its_first_launch_is_passed_over) {
  FakeDriver a("org.example.a", {{}}), b("org.example.b", {{}});
  a.fail("launch", TN_E_DEVICE_LOST, "it fell off the bus");
  Session s;
  ASSERT_EQ(a.link(s.rt), TN_OK);
  ASSERT_EQ(b.link(s.rt), TN_OK);
  EXPECT_EQ(s.find("a,b,cpu"), "a:0");
  EXPECT_TRUE(s.call("a:0", "add", kTwo).empty());
  EXPECT_EQ(s.status, TN_E_DEVICE_LOST) << "an error of this call, not another device unsaid";
  EXPECT_TRUE(has(s.diag.msg, "it fell off the bus")) << s.diag.msg;
  EXPECT_EQ(s.find("a,b,cpu"), "b:0");
  EXPECT_EQ(s.call("b:0", "add", kTwo), (std::vector<float>{4, 6})) << s.diag.msg;
  EXPECT_EQ(s.find("a:0", TN_POLICY_REQUIRE), "");
  EXPECT_TRUE(has(s.diag.msg, "it fell off the bus")) << s.diag.msg;
  for (const tn_device_entry& d : s.devices())
    if (std::strcmp(d.name, "a:0") == 0) { EXPECT_EQ(d.verdict, static_cast<uint32_t>(-TN_E_DEVICE_LOST)) << d.cause; }
}

TEST(PublicReports, onnxruntime_27006_a_launch_that_fails_is_an_error_and_the_device_goes_on) {
  FakeDriver a("org.example.a", {{}});
  a.fail("launch", TN_E_FAILED, "one bad launch");
  Session s;
  ASSERT_EQ(a.link(s.rt), TN_OK);
  EXPECT_TRUE(s.call("a:0", "add", kTwo).empty());
  EXPECT_TRUE(has(s.diag.msg, "one bad launch")) << s.diag.msg;
  EXPECT_TRUE(s.fallbacks.empty());
  a.fail("launch", TN_OK, "");
  EXPECT_EQ(s.find("a,cpu"), "a:0");
  EXPECT_EQ(s.call("a:0", "add", kTwo), (std::vector<float>{4, 6})) << s.diag.msg;
}

// ggml-org/llama.cpp#17536: a card of 32 GB is reported with 55 GB free, being taken for one that shares the host's memory.
TEST(PublicReports, llama_cpp_17536_what_is_said_of_memory_holds_together) {
  FakeDriver gpu("org.example.gpu", {{.name = "liar", .total = 32 * kGiB, .free = 55 * kGiB}, {.name = "large", .total = 192 * kGiB, .free = 191 * kGiB},
                                     {.name = "shared", .flags = TN_DEVICE_INTEGRATED, .total = 16 * kGiB, .free = 1 * kGiB}, {.name = "unknown", .total = 0, .free = 0},
                                     {.name = "huge", .total = UINT64_MAX, .free = UINT64_MAX}});
  Session s({REAL_PLUGINS});
  ASSERT_EQ(gpu.link(s.rt), TN_OK);
  std::map<std::string, tn_device_info> seen;
  const auto host = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  for (const tn_device_entry& d : s.devices()) {
    EXPECT_LE(d.info.mem_free_bytes, d.info.mem_total_bytes) << d.name;
    if (d.info.kind == TN_KIND_CPU || d.info.flags & TN_DEVICE_EMULATED) { EXPECT_LE(d.info.mem_total_bytes, host) << d.name; }
    seen[d.info.name] = d.info;
  }
  EXPECT_EQ(seen["liar"].mem_free_bytes, 0u) << "nonsense is unknown";
  EXPECT_EQ(seen["liar"].mem_total_bytes, 32 * kGiB);
  EXPECT_EQ(seen["large"].mem_total_bytes, 192 * kGiB);
  EXPECT_EQ(seen["large"].mem_free_bytes, 191 * kGiB);
  EXPECT_EQ(seen["huge"].mem_total_bytes, UINT64_MAX);
  for (const auto& [name, info] : seen)
    if (info.kind == kFakeKind) { EXPECT_EQ((info.flags & TN_DEVICE_INTEGRATED) != 0, name == "shared") << name; }
}

// pytorch/pytorch#180712: an installed back-end without its device gives an error that lists unrelated devices.
TEST(PublicReports, pytorch_180712_the_error_about_an_installed_backend_is_about_that_backend) {
  struct Row { const char* stage; tn_status answer; const char* words; tn_status status; const char* code; };
  for (const Row& row : {Row{"open", TN_E_UNAVAILABLE, "libgpu.so.1 is absent", TN_E_UNAVAILABLE, "TN-LOAD-018"}, Row{"open", TN_E_FAILED, "the firmware does not answer", TN_E_FAILED, "TN-LOAD-019"}}) {
    FakeDriver gpu("org.example.gpu", {{}});
    gpu.fail(row.stage, row.answer, row.words);
    Session s;
    gpu.link(s.rt);
    EXPECT_EQ(s.find("gpu:0", TN_POLICY_REQUIRE), "");
    EXPECT_EQ(s.status, row.status) << "absent and broken are told apart";
    EXPECT_TRUE(has(s.diag.msg, row.code) && has(s.diag.msg, row.words) && has(s.diag.msg, "tenon explain")) << s.diag.msg;
    EXPECT_FALSE(has(s.diag.msg, "cpu:0")) << s.diag.msg;
  }
  FakeDriver none("org.example.gpu", {});
  Session s;
  ASSERT_EQ(none.link(s.rt), TN_OK);
  EXPECT_EQ(s.find("gpu:0", TN_POLICY_REQUIRE), "");
  EXPECT_TRUE(has(s.diag.msg, "org.example.gpu") && has(s.diag.msg, "no device")) << s.diag.msg;
  FakeDriver one("org.example.two", {{}});
  ASSERT_EQ(one.link(s.rt), TN_OK);
  EXPECT_EQ(s.find("two:1", TN_POLICY_REQUIRE), "");
  EXPECT_TRUE(has(s.diag.msg, "two:1")) << s.diag.msg;
}

// ValveSoftware/gamescope#2217, vlang/vsl#241, xCollateral/VulkanMod#56: device 0 is taken, though it is the small or the software one.
TEST(PublicReports, gamescope_2217_the_best_device_is_taken_whatever_the_order) {
  const FakeDevice software{.name = "software", .flags = TN_DEVICE_EMULATED, .total = 64 * kGiB}, integrated{.name = "integrated", .flags = TN_DEVICE_INTEGRATED, .total = 32 * kGiB};
  const FakeDevice small{.name = "small", .total = 8 * kGiB}, large{.name = "large", .total = 24 * kGiB};
  std::vector<FakeDevice> order = {integrated, large, small, software};
  const auto less = [](const FakeDevice& a, const FakeDevice& b) { return a.name < b.name; };
  const auto chosen = [](Session& s) {
    const std::string name = s.find("auto");
    for (const tn_device_entry& d : s.devices())
      if (name == d.name) return std::string(d.info.name);
    return std::string("none");
  };
  do {
    FakeDriver one("org.example.gpu", order);
    Session s;
    ASSERT_EQ(one.link(s.rt), TN_OK);
    EXPECT_EQ(chosen(s), "large");
    EXPECT_TRUE(has(s.log, "auto is gpu:") && has(s.log, "large")) << "the reason is told: " << s.log;
    for (size_t i = 0; i < 4; ++i) {  // an explicit choice always wins, and every device can be reached
      const std::string name = "gpu:" + std::to_string(i);
      EXPECT_EQ(s.find(name, TN_POLICY_REQUIRE), name);
      EXPECT_EQ(s.call(name, "add", kTwo), (std::vector<float>{4, 6})) << s.diag.msg;
      EXPECT_EQ(one.launches[i], 1u);
    }

    std::vector<std::unique_ptr<FakeDriver>> drivers;  // each device of a driver of its own
    Session apart;
    for (const FakeDevice& d : order) drivers.push_back(std::make_unique<FakeDriver>("org.example." + d.name, std::vector<FakeDevice>{d}));
    for (auto& d : drivers) ASSERT_EQ(d->link(apart.rt), TN_OK);
    EXPECT_EQ(chosen(apart), "large");
  } while (std::next_permutation(order.begin(), order.end(), less));
}

TEST(PublicReports, gamescope_2217_the_next_best_is_taken_where_the_best_does_not_start_and_software_is_last) {
  FakeDriver gpu("org.example.gpu", {{.name = "large", .total = 24 * kGiB}}), chip("org.example.chip", {{.name = "integrated", .flags = TN_DEVICE_INTEGRATED}}),
      soft("org.example.soft", {{.name = "software", .flags = TN_DEVICE_EMULATED, .total = 64 * kGiB}});
  Session s;
  for (FakeDriver* d : {&soft, &chip, &gpu}) ASSERT_EQ(d->link(s.rt), TN_OK);
  gpu.fail("device open", TN_E_UNAVAILABLE, "it does not start");
  EXPECT_EQ(s.find("auto"), "chip:0");
  Session only;  // no hardware but the CPU: the CPU, never what calls itself emulated
  ASSERT_EQ(soft.link(only.rt), TN_OK);
  EXPECT_EQ(only.find("auto"), "cpu:0");
  for (const tn_device_entry& d : only.devices()) EXPECT_EQ((d.info.flags & TN_DEVICE_EMULATED) != 0, std::strcmp(d.name, "soft:0") == 0);
  EXPECT_EQ(only.find("soft:0", TN_POLICY_REQUIRE), "soft:0");
}

// LostRuins/koboldcpp#1023, NVIDIA/DIGITS#1358: the number that one tool shows is not the number that the other runs.
TEST(PublicReports, koboldcpp_1023_one_number_means_one_device_everywhere) {
  // Listed by speed; by address the order is 2, 0, 1.
  FakeDriver gpu("org.example.gpu", {{.name = "fast", .pci_bdf = 0x0200}, {.name = "middle", .pci_bdf = 0x0300}, {.name = "slow", .pci_bdf = 0x0100}});
  for (int turn = 0; turn < 2; ++turn) {
    std::fill(gpu.launches.begin(), gpu.launches.end(), 0u);
    Session s;
    ASSERT_EQ(gpu.link(s.rt), TN_OK);
    for (const tn_device_entry& d : s.devices()) {
      if (d.info.kind != kFakeKind) continue;
      const auto i = d.info.index;
      EXPECT_EQ(std::string(d.name), "gpu:" + std::to_string(i));
      EXPECT_EQ(gpu.devices[i].name, d.info.name);
      EXPECT_EQ(gpu.devices[i].pci_bdf, d.info.pci_bdf);
      EXPECT_EQ(s.find(d.name, TN_POLICY_REQUIRE), d.name);
      s.ran_on.clear();
      EXPECT_EQ(s.call(d.name, "add", kTwo).size(), 2u);
      EXPECT_EQ(gpu.launches[i], 1u) << "the one that was listed runs";
      EXPECT_EQ(s.ran_on, std::vector<uint32_t>{d.device});
      tn_tensor* t = s.tensor(d.name, {1});
      tn_tensor_info info{};
      info.size = sizeof info;
      tn_tensor_inspect(t, &info);
      EXPECT_EQ(info.device, d.device);
      tn_tensor_release(t);
    }
  }
}

// pynvml#28 and the same card under CUDA, OpenCL and Vulkan: one piece of hardware, by address or UUID.
TEST(PublicReports, koboldcpp_1023_the_same_hardware_under_several_drivers_is_one_piece) {
  FakeDriver cuda("org.example.cuda", {{.name = "card one", .pci_bdf = 0x0200, .uuid = 1}, {.name = "card two", .pci_bdf = 0x0300, .uuid = 2}});
  FakeDriver vulkan("org.example.vulkan", {{.name = "card two", .pci_bdf = 0x0300}, {.name = "card one", .pci_bdf = 0x0200}});
  FakeDriver opencl("org.example.opencl", {{.name = "card one", .uuid = 1}, {.name = "card two", .uuid = 2}});
  std::vector<FakeDriver*> order = {&cuda, &vulkan, &opencl};
  std::sort(order.begin(), order.end());
  do {
    Session s;
    for (FakeDriver* d : order) ASSERT_EQ(d->link(s.rt), TN_OK);
    std::map<std::string, std::set<uint32_t>> pieces;
    for (const tn_device_entry& d : s.devices()) pieces[d.info.kind == kFakeKind ? d.info.name : "host"].insert(d.physical);
    EXPECT_EQ(pieces["card one"].size(), 1u);
    EXPECT_EQ(pieces["card two"].size(), 1u);
    EXPECT_NE(pieces["card one"], pieces["card two"]);
  } while (std::next_permutation(order.begin(), order.end()));
}
