// What lies on a machine: files that name drivers, device nodes, the PCI bus.
#include "tests/doctor/fixture.h"

namespace tenon::cli {
namespace {

using Survey_ = Machine;

TEST_F(Survey_, an_empty_machine_has_nothing_and_the_places_are_named) {
  const Survey seen = look();
  EXPECT_TRUE(seen.vendor_files.empty() && seen.nodes.empty() && seen.hardware.empty());
  EXPECT_EQ(seen.opencl_places, std::vector<std::string>{"/etc/OpenCL/vendors"});
  const std::vector<std::string> vulkan{"/etc/xdg/vulkan/icd.d", "/usr/local/etc/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/usr/share/vulkan/icd.d"};
  EXPECT_EQ(seen.vulkan_places, vulkan);
}

TEST_F(Survey_, opencl_files_are_read_in_bytewise_order) {
  write("/etc/OpenCL/vendors/b.icd", "libb.so.1\n");
  write("/etc/OpenCL/vendors/a.icd", "  /opt/a/liba.so \nsecond line\n");
  write("/etc/OpenCL/vendors/README", "libno.so\n");
  const Survey seen = look();
  ASSERT_EQ(seen.vendor_files.size(), 2u);
  EXPECT_EQ(seen.vendor_files[0].library, "/opt/a/liba.so");
  EXPECT_EQ(seen.vendor_files[0].path, "/etc/OpenCL/vendors/a.icd");
  EXPECT_EQ(seen.vendor_files[1].library, "libb.so.1");
}

TEST_F(Survey_, files_that_name_no_library_say_why) {
  write("/etc/OpenCL/vendors/empty.icd", "\n");
  std::filesystem::create_directories(root + "/etc/OpenCL/vendors/folder.icd");
  write("/usr/share/vulkan/icd.d/text.json", "not JSON");
  write("/usr/share/vulkan/icd.d/none.json", R"({"ICD":{"api_version":"1.0.0"}})");
  write("/usr/share/vulkan/icd.d/odd.json", R"({"ICD":{"library_path":7}})");
  const Survey seen = look();
  ASSERT_EQ(seen.vendor_files.size(), 5u);
  for (const VendorFile& f : seen.vendor_files) {
    EXPECT_EQ(f.library, "") << f.path;
    EXPECT_NE(f.fault, "") << f.path;
  }
  EXPECT_EQ(seen.vendor_files[1].error, EISDIR);
}

TEST_F(Survey_, a_variable_leads_to_other_opencl_drivers) {
  write("/etc/OpenCL/vendors/a.icd", "liba.so\n");
  write("/else/b.icd", "libb.so\n");
  EXPECT_EQ(look({{"OCL_ICD_VENDORS", "/else"}}).vendor_files.at(0).library, "libb.so");
  EXPECT_EQ(look({{"OCL_ICD_VENDORS", "/else/b.icd"}}).vendor_files.at(0).library, "libb.so");
  EXPECT_TRUE(look({{"OCL_ICD_VENDORS", "/nowhere"}}).vendor_files.empty());
  const auto both = look({{"OCL_ICD_FILENAMES", "/opt/c.so:/opt/d.so"}}).vendor_files;
  ASSERT_EQ(both.size(), 3u);
  EXPECT_EQ(both[2].library, "/opt/d.so");
}

TEST_F(Survey_, manifests_are_found_where_loaders_look) {
  write("/etc/vulkan/icd.d/a.json", R"({"ICD":{"library_path":"liba.so"}})");
  write("/home/ann/.local/share/vulkan/icd.d/b.json", R"({"ICD":{"library_path":"../lib/libb.so"}})");
  const auto files = look({{"HOME", "/home/ann"}}).vendor_files;
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].library, "liba.so");
  EXPECT_EQ(files[1].library, "/home/ann/.local/share/vulkan/lib/libb.so") << "counted from the manifest's folder";
}

TEST_F(Survey_, variables_of_vulkan_replace_add_and_hide_manifests) {
  for (const char* name : {"a", "b"}) write(std::string("/etc/vulkan/icd.d/") + name + ".json", std::string(R"({"ICD":{"library_path":"lib)") + name + ".so\"}}");
  write("/my/c.json", R"({"ICD":{"library_path":"libc.so"}})");
  const auto libraries = [&](const std::map<std::string, std::string>& variables) {
    std::string text;
    for (const VendorFile& f : look(variables).vendor_files) text += f.library + ' ';
    return text;
  };
  EXPECT_EQ(libraries({}), "liba.so libb.so ");
  EXPECT_EQ(libraries({{"VK_DRIVER_FILES", "/my/c.json"}}), "libc.so ");
  EXPECT_EQ(libraries({{"VK_ICD_FILENAMES", "/my/c.json"}}), "libc.so ");
  EXPECT_EQ(libraries({{"VK_DRIVER_FILES", "/my"}, {"VK_ICD_FILENAMES", "/etc/vulkan/icd.d/a.json"}}), "libc.so ") << "the newer name goes first";
  EXPECT_EQ(libraries({{"VK_ADD_DRIVER_FILES", "/my/c.json"}}), "libc.so liba.so libb.so ");
  EXPECT_EQ(libraries({{"VK_LOADER_DRIVERS_DISABLE", "A.*"}}), "libb.so ");
  EXPECT_EQ(libraries({{"VK_LOADER_DRIVERS_SELECT", "x*,a*"}}), "liba.so ");
}

TEST_F(Survey_, nodes_carry_owner_group_and_mode_by_the_machines_own_lists) {
  write("/etc/group", "root:x:0:\nvideo:x:44:\n" + std::string("gpu:x:") + std::to_string(getegid()) + ":ann\n");
  write("/etc/passwd", "keeper:x:" + std::to_string(geteuid()) + ":0::/:/bin/sh\n");
  write("/dev/dri/renderD128", "", 0660);
  write("/dev/dri/card0", "", 0660);
  write("/dev/nvidia0", "", 0600);
  for (const char* name : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-caps", "/dev/kfd", "/dev/null"}) write(name, "");
  const auto nodes = look().nodes;
  std::string paths;
  for (const DeviceNode& n : nodes) paths += n.path + ' ';
  EXPECT_EQ(paths, "/dev/kfd /dev/nvidia-uvm /dev/nvidia0 /dev/nvidiactl /dev/dri/renderD128 ");
  EXPECT_EQ(nodes.back().group, geteuid() == 0 ? "root" : "gpu");
  EXPECT_EQ(nodes.back().owner, "keeper");
  EXPECT_EQ(nodes.back().mode, mode_t{0660});
}

TEST_F(Survey_, gpus_are_found_on_the_bus_without_any_driver) {
  gpu("0000:65:00.0", "0x10de", "0x2330", "0x030200");
  gpu("0000:03:00.0", "0x1002", "0x7448", "0x030000", "amdgpu");
  gpu("0000:00:02.0", "0x8086", "0x56a0", "0x030000", "i915");
  gpu("0000:00:03.0", "0x8086", "0x1533", "0x020000", "igb");      // a network card
  gpu("0000:00:04.0", "0x1234", "0x1111", "0x030000", "bochs-drm");  // a display without a processor
  const auto found = look().hardware;
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].driver, "i915");
  EXPECT_EQ(found[1].driver, "amdgpu");
  EXPECT_EQ(found[2].address, "0000:65:00.0");
  EXPECT_EQ(found[2].device, 0x2330u);
  EXPECT_EQ(found[2].driver, "");
}

TEST_F(Survey_, versions_of_the_nvidia_driver_are_read_in_kernel_and_library) {
  write("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\nGCC version:\n");
  write("/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14", "");
  link("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so.550.54.14");
  const Survey seen = look();
  EXPECT_EQ(seen.nvidia_version, "535.129.03");
  EXPECT_EQ(seen.nvidia_library_version, "550.54.14");
}

TEST_F(Survey_, a_library_named_twice_is_one_driver) {
  write("/etc/OpenCL/vendors/a.icd", "libx.so\n");
  write("/etc/OpenCL/vendors/b.icd", "libx.so\n");
  int opencl = 0;
  for (const DriverJob& job : jobs_of(look())) opencl += job.kind == "opencl";
  EXPECT_EQ(opencl, 1);
}

TEST_F(Survey_, what_answers_depend_on_changes_with_hardware_nodes_and_variables) {
  const std::string before = look().identity;
  EXPECT_EQ(before, look().identity);
  EXPECT_NE(before, look({{"CUDA_VISIBLE_DEVICES", "1"}}).identity);
  EXPECT_EQ(before, look({{"EDITOR", "vi"}}).identity);
  write("/dev/dri/renderD128", "", 0660);
  const std::string node = look().identity;
  EXPECT_NE(before, node);
  chmod((root + "/dev/dri/renderD128").c_str(), 0666);
  const std::string open = look().identity;
  EXPECT_NE(node, open);
  write("/usr/lib/libcuda.so.1", "");
  EXPECT_NE(open, look().identity) << "a library came";
}

}  // namespace
}  // namespace tenon::cli
