// From facts to what a person reads: one fake for each reason, each with what to type.
#include "tests/doctor/fixture.h"

namespace tenon::cli {
namespace {

const Person kAnn{"ann", 1000, {1000}, {1000}};
const Person kRoot{"root", 0, {0}, {0}};
constexpr const char* kWorks = R"({"device":{"platform":"P","name":"Card","type":"gpu","version":"3.0","driver":"1","memory_bytes":206158430208,"software":false,"pci":"0000:65:00.0"}})" "\n" R"({"done":true})" "\n";

std::string fault_row(const std::string& reason, const std::string& more = "{}") { return R"({"fault":{"reason":")" + reason + R"(","why":"because","more":)" + more + "}}\n"; }

Findings explain(const std::vector<DriverAnswer>& answers, const Survey& seen = {}, const Person& person = kAnn, const Shown& shown = {}) {
  Findings out;
  explain_drivers(seen, answers, person, shown, &out);
  return out;
}

Finding one(const Findings& all, const std::string& check) {
  for (const Finding& f : all)
    if (f.check == check) return f;
  ADD_FAILURE() << "no finding is called " << check;
  return {};
}

Survey with_gpu(uint32_t vendor, const char* driver) {
  Survey seen;
  seen.hardware.push_back({"0000:65:00.0", vendor, 0x2330, 0x030200, driver});
  return seen;
}

TEST(Reasons, have_one_word_each_and_lead_back) {
  for (int r = 1; r <= static_cast<int>(Reason::driver_timeout); ++r) EXPECT_EQ(reason_of(reason_name(static_cast<Reason>(r))), static_cast<Reason>(r));
  EXPECT_EQ(reason_of("out_of_luck"), Reason::none);
  EXPECT_STREQ(reason_name(Reason::none), "");
}

struct Broken { const char *reason, *more, *word, *advice; };
void PrintTo(const Broken& b, std::ostream* out) { *out << b.reason; }
class EachReason : public ::testing::TestWithParam<Broken> {};

// D03: a closed list, and what belongs to each (pytorch/pytorch#30528, #180712).
TEST_P(EachReason, is_said_with_its_facts_and_what_to_type) {
  const Broken& b = GetParam();
  const Finding f = one(explain({said("opencl", "libpocl.so.2", fault_row(b.reason, b.more), "/etc/OpenCL/vendors/pocl.icd")}), "opencl pocl");
  EXPECT_STREQ(reason_name(f.reason), b.reason);
  EXPECT_EQ(f.state, State::warning);
  EXPECT_FALSE(f.required);
  EXPECT_NE(f.value.find(b.word), std::string::npos) << f.value;
  EXPECT_EQ(f.advice, b.advice);
  EXPECT_NE(f.why.find("/etc/OpenCL/vendors/pocl.icd"), std::string::npos) << f.why;
}
INSTANTIATE_TEST_SUITE_P(Doctor, EachReason, ::testing::Values(
    Broken{"library_missing", R"({"library":"libhwloc.so.15","needed_by":"libpocl.so.2"})", "libhwloc.so.15 is missing", "sudo apt install libhwloc15"},
    Broken{"library_missing", R"({"library":"libodd.so.3","needed_by":"libpocl.so.2"})", "libodd.so.3 is missing", "apt-file search libodd.so.3"},
    Broken{"driver_too_old", R"({"have":"1.1","need":"1.2"})", "has 1.1, needed is 1.2", "sudo apt install --only-upgrade pocl-opencl-icd"},
    Broken{"no_permission", R"({"path":"/opt/libpocl.so.2"})", "/opt/libpocl.so.2 may not be read", "sudo chmod a+rx /opt/libpocl.so.2"},
    Broken{"abi_mismatch", R"({"library":"libpocl.so.2"})", "do not fit", "sudo apt install --reinstall pocl-opencl-icd"},
    Broken{"init_failed", R"({"code":"OpenCL error -6"})", "OpenCL error -6", "sudo apt install --reinstall pocl-opencl-icd"},
    Broken{"driver_crashed", R"({"signal":"SIGSEGV","stage":"start"})", "crashes", "sudo apt install --reinstall pocl-opencl-icd"},
    Broken{"driver_timeout", R"({"limit":"10 s","stage":"start"})", "does not answer", "sudo apt install --reinstall pocl-opencl-icd"}));

TEST(Explain, a_driver_that_works_is_not_said_to_be_used) {
  const Finding f = one(explain({said("vulkan", "libx.so", kWorks, "/x/x_icd.json")}), "vulkan x");
  EXPECT_EQ(f.state, State::note);
  EXPECT_EQ(f.reason, Reason::not_built);
  EXPECT_EQ(f.value, "Card, Vulkan 3.0, 192 GiB");
  EXPECT_NE(f.detail.text().find("\"memory_bytes\":206158430208"), std::string::npos) << "64 bits of it";
}

TEST(Explain, a_driver_that_a_device_of_tenon_stands_on_needs_no_reason) {
  const Finding f = one(explain({said("vulkan", "libx.so", kWorks, "/x/x_icd.json")}, {}, kAnn, {{"cpu:0", "vulkan:0"}, {}}), "vulkan x");
  EXPECT_EQ(f.state, State::good);
  EXPECT_EQ(f.reason, Reason::none);
}

TEST(Explain, devices_that_are_software_are_called_so) {
  const std::string rows = R"({"device":{"name":"llvmpipe","type":"cpu","version":"1.3","memory_bytes":1,"software":true}})" "\n";
  EXPECT_NE(one(explain({said("vulkan", "l.so", rows, "/x/lvp_icd.x86_64.json")}), "vulkan lvp").value.find("runs on the processor"), std::string::npos);
}

TEST(Explain, drivers_without_a_device_share_one_line) {
  const std::string none = fault_row("no_device");
  const Finding f = one(explain({said("vulkan", "a.so", none, "/x/intel_icd.json"), said("vulkan", "b.so", none, "/x/radeon_icd.json")}), "vulkan");
  EXPECT_EQ(f.value, "intel, radeon find no device");
  EXPECT_EQ(f.state, State::note);
  EXPECT_EQ(f.reason, Reason::no_device);
}

TEST(Explain, drivers_without_their_loader_cannot_be_reached) {
  const auto all = explain({said("library", "libvulkan.so.1", fault_row("library_missing", R"({"library":"libvulkan.so.1"})")), said("vulkan", "x.so", kWorks, "/x/x_icd.json")}, {}, kAnn, {{}, {"vulkan"}});
  EXPECT_EQ(one(all, "vulkan loader").advice, "sudo apt install libvulkan1");
  EXPECT_TRUE(one(all, "vulkan loader").required);
  EXPECT_FALSE(one(all, "vulkan x").required) << "that one works";
}

TEST(Explain, nothing_at_all_is_said_with_the_places_and_the_packages) {
  Survey seen;
  seen.opencl_places = {"/etc/OpenCL/vendors"};
  const auto all = explain({said("library", "libOpenCL.so.1", fault_row("library_missing", R"({"library":"libOpenCL.so.1"})")), said("cuda", "libcuda.so.1", fault_row("library_missing", R"({"library":"libcuda.so.1"})"))}, seen);
  const Finding f = one(all, "opencl");
  EXPECT_EQ(f.reason, Reason::library_missing);
  EXPECT_NE(f.why.find("/etc/OpenCL/vendors names no driver"), std::string::npos) << f.why;
  EXPECT_EQ(f.advice, "sudo apt install ocl-icd-libopencl1 pocl-opencl-icd");
  EXPECT_EQ(one(all, "cuda").reason, Reason::no_device) << "no library and no hardware: the hardware is what is missing";
  EXPECT_EQ(one(all, "cuda").state, State::note);
}

TEST(Explain, hardware_without_a_driver_is_named_with_ids_and_address) {
  const Finding f = one(explain({}, with_gpu(0x10de, "")), "hardware");
  EXPECT_EQ(f.value, "an NVIDIA GPU (10de:2330) at 0000:65:00.0 has no driver");
  EXPECT_EQ(f.reason, Reason::library_missing);
  EXPECT_EQ(f.advice, "sudo apt install nvidia-driver");
}

TEST(Explain, hardware_in_other_hands_is_no_device) {
  for (const char* driver : {"vfio-pci", "nouveau"}) EXPECT_EQ(one(explain({}, with_gpu(0x10de, driver)), "hardware").reason, Reason::no_device) << driver;
  EXPECT_EQ(one(explain({}, with_gpu(0x1002, "amdgpu")), "hardware").state, State::good);
}

TEST(Explain, a_driver_at_work_without_nodes_is_said) {
  const Finding f = one(explain({}, with_gpu(0x10de, "nvidia")), "device nodes");
  EXPECT_EQ(f.reason, Reason::no_device);
  EXPECT_EQ(f.value, "/dev/nvidiactl is absent");
}

TEST(Explain, hardware_without_its_library_wants_the_package) {
  const Finding f = one(explain({said("cuda", "libcuda.so.1", fault_row("library_missing", R"({"library":"libcuda.so.1"})"))}, with_gpu(0x10de, "nvidia")), "cuda");
  EXPECT_EQ(f.reason, Reason::library_missing);
  EXPECT_EQ(f.state, State::warning);
  EXPECT_EQ(f.advice, "sudo apt install libcuda1");
}

TEST(Explain, a_kernel_and_a_library_of_two_versions_do_not_fit) {
  Survey seen = with_gpu(0x10de, "nvidia");
  seen.nvidia_version = "535.129.03";
  seen.nvidia_library_version = "550.54.14";
  const Finding f = one(explain({said("cuda", "libcuda.so.1", fault_row("init_failed", R"({"code":"CUDA error 803"})"))}, seen), "cuda");
  EXPECT_EQ(f.reason, Reason::abi_mismatch);
  EXPECT_NE(f.why.find("535.129.03"), std::string::npos);
  EXPECT_NE(f.why.find("550.54.14"), std::string::npos);
  EXPECT_EQ(f.advice, "sudo reboot");
}

TEST(Explain, a_filter_that_hides_every_device_is_what_to_take_away) {
  Survey seen = with_gpu(0x10de, "nvidia");
  seen.nvidia_version = "535.129.03";
  seen.filters["cuda"] = "CUDA_VISIBLE_DEVICES";
  EXPECT_EQ(one(explain({said("cuda", "libcuda.so.1", fault_row("no_device", R"({"code":"CUDA_ERROR_NO_DEVICE"})"))}, seen), "cuda").advice, "unset CUDA_VISIBLE_DEVICES");
}

TEST(Explain, only_what_is_required_is_missing) {
  const std::vector<DriverAnswer> crash{said("opencl", "libpocl.so.2", fault_row("driver_crashed", R"({"signal":"SIGSEGV"})"), "/e/pocl.icd")};
  EXPECT_EQ(one(explain(crash), "opencl pocl").state, State::warning);
  const Finding f = one(explain(crash, {}, kAnn, {{}, {"opencl"}}), "opencl pocl");
  EXPECT_EQ(f.state, State::missing);
  EXPECT_TRUE(f.required);
  for (const Finding& g : explain({said("opencl", "libpocl.so.2", kWorks, "/e/pocl.icd")}, {}, kAnn, {{}, {"opencl"}})) EXPECT_FALSE(g.required) << g.check;
}

// ---- nodes. D04: the node's own group, never a fixed one (ROCm/rocminfo#34) -------------------------------------------
DeviceNode node(mode_t mode, gid_t gid, const std::string& group, uid_t uid = 0) { return {"/dev/dri/renderD128", "root", group, uid, gid, mode, 0}; }

struct Refusal { const char* name; DeviceNode node; Person person; const char* advice; };
void PrintTo(const Refusal& r, std::ostream* out) { *out << r.name; }
class EachRefusal : public ::testing::TestWithParam<Refusal> {};

TEST_P(EachRefusal, rocminfo_34_has_the_least_that_opens_the_node) {
  const Finding f = refused_node(GetParam().node, "EACCES", GetParam().person);
  EXPECT_EQ(f.reason, Reason::no_permission);
  EXPECT_EQ(f.advice, GetParam().advice) << f.why;
  EXPECT_NE(f.why.find(GetParam().node.group), std::string::npos) << f.why;
  EXPECT_NE(f.detail.text().find("\"group\":\"" + GetParam().node.group + "\""), std::string::npos);
}
INSTANTIATE_TEST_SUITE_P(Doctor, EachRefusal, ::testing::Values(
    Refusal{"another_group", node(0660, 105, "render"), kAnn, "sudo usermod -aG render ann"},
    Refusal{"odd_group", node(0660, 77, "gamers"), kAnn, "sudo usermod -aG gamers ann"},
    Refusal{"group_without_name", node(0660, 4242, "4242"), kAnn, "sudo groupadd -g 4242 gpu && sudo usermod -aG gpu ann"},
    Refusal{"joined_after_login", node(0660, 105, "render"), {"ann", 1000, {1000}, {1000, 105}}, "newgrp render"},
    Refusal{"group_root", node(0660, 0, "root"), kAnn, "sudo setfacl -m u:ann:rw /dev/dri/renderD128"},
    Refusal{"group_may_not", node(0600, 105, "render"), kAnn, "sudo setfacl -m u:ann:rw /dev/dri/renderD128"},
    Refusal{"container", node(0666, 105, "render"), kAnn, "docker run --device=/dev/dri/renderD128 IMAGE"},
    Refusal{"container_of_root", node(0660, 105, "render"), kRoot, "docker run --device=/dev/dri/renderD128 IMAGE"}),
    [](const auto& info) { return info.param.name; });

TEST(Nodes, one_that_does_not_open_in_time_is_not_said_to_open) {
  Survey seen;
  seen.nodes = {node(0666, 105, "render"), {"/dev/kfd", "root", "render", 0, 105, 0666, 0}};
  const auto all = explain({said("nodes", "/dev/dri/renderD128", fault_row("driver_timeout", R"({"limit":"10 s","stage":"open"})")), said("nodes", "/dev/kfd", "")}, seen);
  EXPECT_EQ(one(all, "device node").reason, Reason::driver_timeout);
  EXPECT_EQ(one(all, "device nodes").value, "/dev/kfd opens");
}

TEST(Nodes, rocminfo_34_only_refusals_are_a_matter_of_permission) {
  const DeviceNode n = node(0660, 105, "render");
  EXPECT_EQ(refused_node(n, "EPERM", kAnn).reason, Reason::no_permission);
  for (const char* code : {"ENODEV", "ENXIO", "ENOENT"}) EXPECT_EQ(refused_node(n, code, kAnn).reason, Reason::no_device) << code;
  for (const char* code : {"ENOMEM", "EFAULT", "EBUSY", "EIO"}) {
    const Finding f = refused_node(n, code, kAnn);
    EXPECT_EQ(f.reason, Reason::init_failed) << code;
    EXPECT_NE(f.value.find(code), std::string::npos) << f.value;
    EXPECT_NE(f.detail.text().find(std::string("\"code\":\"") + code + "\""), std::string::npos);
  }
}

}  // namespace
}  // namespace tenon::cli
