// Which devices exist for a program: TENON_DEVICES, and the drivers' own variables on every route (law 10, D07).
#include "tests/devices/machine.h"

namespace {

constexpr uint32_t kHidden = static_cast<uint32_t>(-TN_E_POLICY);
constexpr const char* kUuid1 = "uuid:01010101-0101-0101-0101-010101010101";
constexpr const char* kUuid2 = "uuid:02020202-0202-0202-0202-020202020201";  // the fakes' last byte is 1

// Two cards, each reached by two plugins, the second of which counts them the other way round.
void two_cards(Machine* m) {
  m->add("cuda", "u=1,p=6500,m=8 u=2,p=b300,m=16");
  m->add("vulkan", "u=2,p=b300,m=16 u=1,p=6500,m=8");
}

std::string names(const Machine& m) {
  Tenon t(m);
  EXPECT_EQ(t.status, TN_OK) << t.diag.msg;
  return t.names();
}

}  // namespace

TEST(Filter, lets_through_the_devices_it_names_and_no_others) {
  Machine m;
  two_cards(&m);
  EXPECT_EQ(names(m), "cpu:0 cuda:0 cuda:1 vulkan:0 vulkan:1");
  m.set("TENON_DEVICES", "cpu,cuda:1");
  EXPECT_EQ(names(m), "cpu:0 cuda:0! cuda:1 vulkan:0! vulkan:1!");
  m.set("TENON_DEVICES", "vulkan");  // all of that plugin
  EXPECT_EQ(names(m), "cpu:0! cuda:0! cuda:1! vulkan:0 vulkan:1");
  m.set("TENON_DEVICES", "");  // as if it were not set
  EXPECT_EQ(names(m), "cpu:0 cuda:0 cuda:1 vulkan:0 vulkan:1");
}

TEST(Filter, that_names_hardware_lets_all_routes_to_it_through) {
  Machine m;
  two_cards(&m);
  for (const std::string& spec : {std::string(kUuid2), std::string("pci:0000:b3:00.0"), std::string("pci:b3:00.0"), std::string("uuid:02020202020202020202020202020201")}) {
    m.set("TENON_DEVICES", "cpu," + spec);
    EXPECT_EQ(names(m), "cpu:0 cuda:0! cuda:1 vulkan:0 vulkan:1!") << spec;
  }
}

TEST(Filter, reaches_a_route_that_lacks_what_it_names_through_one_that_has_it) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8 u=2,p=b300,m=16");
  m.add("vulkan", "p=b300,m=16 p=6500,m=8");  // no UUIDs here
  m.set("TENON_DEVICES", std::string("cpu,") + kUuid2);
  for (int start = 0; start < 2; ++start) EXPECT_EQ(names(m), "cpu:0 cuda:0! cuda:1 vulkan:0 vulkan:1!") << start;
}

TEST(Filter, hides_from_auto_from_names_and_from_fallback) {
  Machine m;
  two_cards(&m);
  m.set("TENON_DEVICES", "cuda:0");
  Tenon t(m);
  EXPECT_EQ(t.find("auto"), "cuda:0");
  EXPECT_EQ(t.find("cuda:1"), "");
  EXPECT_STREQ(t.diag.msg, "device cuda:1 cannot be used\nwhy: hidden by TENON_DEVICES=cuda:0\ntry: `tenon devices` lists usable ones");
  EXPECT_EQ(t.find("cpu"), "");
  EXPECT_EQ(t.device("cpu:0").verdict, kHidden);
  tn_queue* q = nullptr;
  EXPECT_EQ(tn_queue_get(t.rt, t.device("cpu:0").device, &q, &t.diag), TN_E_UNAVAILABLE);
  EXPECT_EQ(tn_queue_create(t.rt, t.device("cuda:1").device, 0, &q, &t.diag), TN_E_UNAVAILABLE);
  EXPECT_EQ(t.add_on(t.device("cuda:0").device), "");
}

TEST(Filter, keeps_a_plugin_closed_none_of_whose_devices_it_means) {
  Machine m;
  two_cards(&m);
  m.set("TENON_DEVICES", "cpu,cuda");
  for (int start = 0; start < 2; ++start) {  // tried in a child the first time, known the second
    if (start == 1) m.watch();
    Tenon t(m);
    EXPECT_EQ(t.plugin("vulkan").stage, 5u) << start;
    EXPECT_EQ(t.find("vulkan:0"), "");
    EXPECT_EQ(t.plugin("vulkan").stage, 5u);
  }
  EXPECT_EQ(m.count("vulkan constructor"), 0u);
  m.set("TENON_CONFIG", "loader.open=all");
  Tenon t(m);
  EXPECT_EQ(m.count("vulkan constructor"), 0u);
  EXPECT_EQ(m.count("cuda open"), 1u);
}

TEST(Filter, that_names_what_is_not_there_is_an_error_that_lists_what_is) {
  Machine m;
  two_cards(&m);
  m.set("TENON_DEVICES", "cpu,cuda:2");
  {
    Tenon t(m);
    EXPECT_EQ(t.status, TN_E_NOT_FOUND);
    EXPECT_EQ(t.diag.id, 7u << 16 | 7);
    EXPECT_STREQ(t.diag.msg, "TENON_DEVICES names a device that is not here\nwhy: cuda:2 is none of cpu:0, cuda:0, cuda:1, vulkan:0, vulkan:1\ntry: correct it; `TENON_DEVICES= tenon plugins` says why one is absent");
  }
  for (const char* spec : {"uuid:07070707-0707-0707-0707-070707070701", "pci:0000:01:00.0", "hip"}) {
    m.set("TENON_DEVICES", spec);
    EXPECT_EQ(Tenon(m).status, TN_E_NOT_FOUND) << spec;
  }
  for (const char* spec : {"cpu,", "cpu,,cuda", ",cpu", " cpu", "cuda:", "cuda:x", "cuda:01", "cuda:-1", "uuid:12", "pci:zz", "pci:0:0:65:00.0", "pci:65:00.8", "gpu!"}) {
    m.set("TENON_DEVICES", spec);
    const Tenon t(m);
    EXPECT_EQ(t.status, std::string(spec) == "cpu," ? TN_OK : TN_E_ARG) << spec;
  }
}

TEST(Filter, may_be_a_setting_that_the_variable_overrides) {
  Machine m;
  two_cards(&m);
  m.set("TENON_CONFIG", "devices.visible=cpu,cuda:0");
  {
    Tenon t(m);
    EXPECT_EQ(t.names(), "cpu:0 cuda:0 cuda:1! vulkan:0! vulkan:1!");
    EXPECT_STREQ(t.device("cuda:1").cause, "hidden by devices.visible=cpu,cuda:0");
  }
  m.set("TENON_DEVICES", "cuda:1");
  EXPECT_EQ(names(m), "cpu:0! cuda:0! cuda:1 vulkan:0! vulkan:1!");
}

TEST(Filter, holds_for_plugins_that_are_added_later) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8");
  m.set("TENON_DEVICES", kUuid1);
  m.unset("TENON_DEVICES");
  m.set("TENON_DEVICES", "cuda,cpu");
  Tenon t(m);
  m.set("TENON_FAKE_vulkan", "u=1,p=6500,m=8");
  ASSERT_EQ(tn_plugin_load(t.rt, FAKE_DIR "/vulkan.so", nullptr, &t.diag), TN_OK) << t.diag.msg;
  EXPECT_EQ(t.names(), "cpu:0 cuda:0 vulkan:0!");
}

// ---- the drivers' own variables ---------------------------------------------------------------------------------------

TEST(DriverFilter, hides_the_hardware_on_every_route) {
  Machine m;
  two_cards(&m);
  const std::pair<const char*, const char*> cases[] = {
      {"0", "cpu:0 cuda:0 vulkan:0! vulkan:1"}, {"1", "cpu:0 cuda:0 vulkan:0 vulkan:1!"}, {"1,0", "cpu:0 cuda:0 cuda:1 vulkan:0 vulkan:1"},
      {"GPU-02020202", "cpu:0 cuda:0 vulkan:0 vulkan:1!"}, {"", "cpu:0 vulkan:0! vulkan:1!"}, {"-1", "cpu:0 vulkan:0! vulkan:1!"}};
  for (const auto& [value, seen] : cases) {
    m.set("CUDA_VISIBLE_DEVICES", value);
    for (int start = 0; start < 2; ++start) EXPECT_EQ(names(m), seen) << value << " start " << start;
  }
  m.unset("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(names(m), "cpu:0 cuda:0 cuda:1 vulkan:0 vulkan:1");
}

TEST(DriverFilter, is_the_cause_that_is_given) {
  Machine m;
  two_cards(&m);
  m.set("CUDA_VISIBLE_DEVICES", "1");
  Tenon t(m);
  EXPECT_EQ(t.device("vulkan:1").verdict, kHidden);
  EXPECT_STREQ(t.device("vulkan:1").cause, "hidden by CUDA_VISIBLE_DEVICES=1");
  EXPECT_EQ(t.find("vulkan:1"), "");
  EXPECT_EQ(t.find("auto"), "cuda:0");
}

TEST(DriverFilter, of_one_driver_leaves_the_hardware_of_others) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8");
  m.add("hip", "u=3,p=300,m=16 u=4,p=400,m=16");
  m.add("vulkan", "u=1,p=6500,m=8 u=3,p=300,m=16 u=4,p=400,m=16 u=9,p=900,m=1,integrated");
  m.set("HIP_VISIBLE_DEVICES", "1");
  EXPECT_EQ(names(m), "cpu:0 cuda:0 hip:0 vulkan:0 vulkan:1! vulkan:2 vulkan:3");
}

TEST(DriverFilter, matches_by_address_where_a_route_has_no_uuid) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8 u=2,p=b300,m=16");
  m.add("vulkan", "p=b300,m=16 p=6500,m=8");
  m.set("CUDA_VISIBLE_DEVICES", "1");
  EXPECT_EQ(names(m), "cpu:0 cuda:0 vulkan:0 vulkan:1!");
}

TEST(DriverFilter, that_cannot_be_followed_is_said_and_not_guessed) {
  Machine m;
  m.add("cuda", "m=8 m=16");  // nothing identifies them
  m.add("vulkan", "u=1,p=6500,m=8");
  m.set("CUDA_VISIBLE_DEVICES", "1");
  Tenon t(m);
  EXPECT_EQ(t.names(), "cpu:0 cuda:0 vulkan:0");
  EXPECT_STREQ(t.plugin("cuda").cause, "CUDA_VISIBLE_DEVICES=1 hides 1 of its devices that give neither UUID nor PCI address: other routes to them are not hidden");
}

TEST(DriverFilter, with_an_entry_that_means_nothing_says_so) {
  Machine m;
  two_cards(&m);
  const std::pair<const char*, const char*> cases[] = {{"0,7", "CUDA_VISIBLE_DEVICES names \"7\", which is none of 2 devices"}, {"GPU-0909", "CUDA_VISIBLE_DEVICES names \"GPU-0909\", which is none of 2 devices"},
                                                       {"0", ""}, {"GPU-01010101-0101", ""}, {"MIG-1/2/3", ""}, {"-1", ""}, {"", ""}};
  for (const auto& [value, said] : cases) {
    m.set("CUDA_VISIBLE_DEVICES", value);
    Tenon t(m);
    EXPECT_STREQ(t.plugin("cuda").cause, said) << value;
    EXPECT_TRUE(*said == '\0' || t.log.find(said) != std::string::npos) << value;
  }
}

TEST(DriverFilter, and_the_runtimes_own_hold_together) {
  Machine m;
  two_cards(&m);
  m.set("CUDA_VISIBLE_DEVICES", "0");
  m.set("TENON_DEVICES", "vulkan,cpu");
  EXPECT_EQ(names(m), "cpu:0 cuda:0! vulkan:0! vulkan:1");
}

// ---- one identity in every listing and every selector --------------------------------------------------------------------

TEST(Identity, koboldcpp_1023_selects_the_same_hardware_whatever_the_order_of_the_listing_is) {
  Machine m;
  two_cards(&m);
  for (int start = 0; start < 2; ++start) {
    Tenon t(m);
    for (const std::string& spec : {std::string("pci:0000:b3:00.0"), std::string("pci:b3:0.0"), std::string(kUuid2), std::string("uuid:02020202020202020202020202020201")}) {
      EXPECT_EQ(t.find(spec), "cuda:1") << spec;  // by its vendor's own interface
      EXPECT_EQ(t.find(spec + ",cpu", TN_POLICY_PREFER), "cuda:1") << spec;
    }
    EXPECT_EQ(t.find("pci:0000:01:00.0"), "");
    EXPECT_EQ(t.diag.id, 7u << 16 | 4) << t.diag.msg;
    EXPECT_EQ(t.find("pci:0000:01:00.0,cpu", TN_POLICY_PREFER), "cpu:0");
  }
}

TEST(Identity, goes_over_to_another_route_where_the_first_is_hidden_or_fails) {
  Machine m;
  two_cards(&m);
  m.set("TENON_DEVICES", "cpu,vulkan");
  {
    Tenon t(m);
    EXPECT_EQ(t.find("pci:0000:b3:00.0"), "vulkan:0");
  }
  m.unset("TENON_DEVICES");
  m.set("TENON_FAKE_FAIL", "cuda");
  Tenon t(m);
  EXPECT_EQ(t.find("cuda:1"), "");
  EXPECT_EQ(t.find("pci:0000:b3:00.0"), "vulkan:0");
}

TEST(Identity, a_partition_has_no_address_of_its_own) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8,partition u=2,p=6500,m=8,partition");
  Tenon t(m);
  EXPECT_EQ(t.find("pci:0000:65:00.0"), "");
  EXPECT_EQ(t.find(kUuid2), "cuda:1");
}
