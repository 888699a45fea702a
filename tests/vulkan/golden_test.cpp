// What the errors say: tests/errors/golden/TN-DEVICE-vulkan.txt, in the form of that folder; TENON_GOLDEN_UPDATE=1 writes it.
// Words of the machine (device, driver) stand there as DEVICE.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "backends/vulkan/status.h"
#include "backends/vulkan/timeline.h"
#include "tests/vulkan/fixture.h"

namespace tenon::vulkan::test {
namespace {

class Golden : public VulkanTest {
 protected:
  void say(uint32_t id, const std::string& label, tn_status status, const tn_diag& diag) {
    const std::string key = "TN-DEVICE-" + std::to_string(id & 0xFFFF) + " " + label;
    EXPECT_EQ(diag.id, id) << key << ": " << diag.msg;
    EXPECT_EQ(diag.status, status) << key;
    EXPECT_LT(diag.len + 1, sizeof diag.msg) << key << " is cut: " << diag.msg;
    std::string text = diag.msg;
    const std::string name = rig->facts[0].info.name;
    for (size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), "DEVICE");
    seen_["[" + key + "]"] = "what: " + text;
  }
  // What depends on the machine.
  void put_word(const std::string& from, const std::string& to) {
    std::string text = diag_.msg;
    ASSERT_NE(text.find(from), std::string::npos) << text;
    text.replace(text.find(from), from.size(), to);
    std::snprintf(diag_.msg, sizeof diag_.msg, "%s", text.c_str());
  }
  void compare() {
    const std::string path = TENON_GOLDEN_DIR "/TN-DEVICE-vulkan.txt";
    std::string all;
    for (const auto& [key, text] : seen_) all += key + "\n" + text + "\n\n";
    if (std::getenv("TENON_GOLDEN_UPDATE") != nullptr) {
      std::ofstream(path) << all;
      return;
    }
    std::ifstream file(path);
    EXPECT_EQ(all, std::string(std::istreambuf_iterator<char>(file), {}));
  }
  std::map<std::string, std::string> seen_;
  tn_diag diag_{};
};

TEST_F(Golden, texts_are_said) {
  tn_status s = translate(&diag_, VK_ERROR_DEVICE_LOST, "vkQueueSubmit");
  say(kErrLost, "lost", s, diag_);
  s = translate(&diag_, VK_ERROR_OUT_OF_DEVICE_MEMORY, "vkCreateBuffer");
  say(kErrOutOfMemory, "of the driver", s, diag_);
  s = translate(&diag_, VK_ERROR_UNKNOWN, "vkCreateComputePipelines");
  say(kErrRefused, "pipeline", s, diag_);

  Host bad(Config{{"vulkan.validation", "yes"}});
  std::unique_ptr<gpu::Driver> driver;
  s = gpu::make_driver(bad.get(), &driver, &diag_);
  say(kErrConfig, "no number", s, diag_);
  setenv("VK_ICD_FILENAMES", "/no/such/driver.json", 1);  // what the loader takes for all its drivers
  Host plain(Config{});
  s = gpu::make_driver(plain.get(), &driver, &diag_);
  unsetenv("VK_ICD_FILENAMES");
  say(kErrAbsent, "no driver", s, diag_);
  std::unique_ptr<gpu::Device> none;
  s = rig->driver->open_device(1000, &none, &diag_);
  const std::string count = "there are " + std::to_string(rig->facts.size());  // of this machine
  put_word(count, "there are N");
  say(kErrNoSuchDevice, "beyond the last", s, diag_);

  std::string binary;
  s = device().compile(affine_spec(), "#version 450\nvoid main() { nobody = 1; }\n", {}, &binary, &diag_);
  say(kErrText, "text", s, diag_);
  std::unique_ptr<gpu::Kernel> k;
  s = device().load(affine_spec(), {}, "damaged", &k, &diag_);
  say(kErrText, "module", s, diag_);
  gpu::KernelSpec lanes = affine_spec();
  lanes.subgroup = 4096;
  ASSERT_EQ(device().compile(lanes, affine_text(false), {}, &binary, nullptr), TN_OK);
  s = device().load(lanes, {}, binary, &k, &diag_);
  const gpu::Caps& caps = device().caps();
  put_word(std::to_string(caps.subgroup_min) + ".." + std::to_string(caps.subgroup_max) + (caps.subgroup_fixed ? "" : ", as it likes"), "N..N");
  say(kErrSubgroup, "of 4096 lanes", s, diag_);

  auto str = stream();
  const auto m = alloc(100);
  char host[8];
  s = str->copy({0, 0, host}, {m.handle, 96, nullptr}, 8, &diag_);
  say(kErrArgument, "copy", s, diag_);
  s = str->fill_zero(m.handle, 2, 4, &diag_);
  say(kErrArgument, "fill", s, diag_);
  s = str->copy({m.handle, 2, nullptr}, {m.handle, 0, nullptr}, 8, &diag_);
  say(kErrArgument, "overlap", s, diag_);
  device().free(m.handle);
  Rig other(Config{});
  std::unique_ptr<gpu::Stream> theirs;
  std::shared_ptr<gpu::Fence> fence;
  ASSERT_EQ(other.device->open_stream(0, &theirs, nullptr), TN_OK);
  ASSERT_EQ(theirs->fence(&fence, nullptr), TN_OK);
  s = str->wait(fence, &diag_);
  say(kErrForeignFence, "of another device", s, diag_);
  s = TimelineFence(static_cast<const TimelineFence&>(*fence).timeline, 5).wait(0, &diag_);  // a step that is never taken
  say(kErrTimeout, "of a wait", s, diag_);
  compare();
}

}  // namespace
}  // namespace tenon::vulkan::test
