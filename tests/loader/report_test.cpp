// What a plugin said when it was tried, as text: on a pipe the plugin can write to, and in files.
#include "loader/probe/report.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

using namespace tenon::loader;

namespace {

PluginReport two_devices() {
  PluginReport r;
  r.offers = 1, r.kernels = 12;
  for (uint32_t i = 0; i < 2; ++i) {
    tn_device_info d{};
    d.size = sizeof d;
    d.index = i, d.kind = TN_KIND_CUDA, d.flags = TN_DEVICE_UUID_TRUSTED, d.pci_domain = 1, d.pci_bdf = 0x6500 + i, d.vendor_id = 0x10de, d.device_id = 0x2330;
    for (uint8_t k = 0; k < 16; ++k) d.uuid[k] = static_cast<uint8_t>(0xF8 + k + i);
    d.mem_total_bytes = UINT64_MAX - i, d.dtype_storage = 1, d.dtype_compute = 2, d.dtype_matrix = UINT64_C(1) << 63, d.n_spaces = 3;
    std::strcpy(d.name, "NVIDIA H200");
    std::strcpy(d.driver, i ? "" : "550.54 build 7");
    r.devices.push_back(d);
  }
  return r;
}

}  // namespace

TEST(Report, comes_back_from_text_as_it_was) {
  const PluginReport r = two_devices();
  const auto back = parse_report(report_text(r));
  ASSERT_TRUE(back);
  EXPECT_EQ(report_change(r, *back), std::nullopt);
  EXPECT_EQ(back->devices[1].mem_total_bytes, UINT64_MAX - 1);
  EXPECT_EQ(std::memcmp(back->devices[1].uuid, r.devices[1].uuid, 16), 0);
  EXPECT_STREQ(back->devices[0].driver, "550.54 build 7");
  EXPECT_EQ(back->devices[0].size, sizeof(tn_device_info));
  EXPECT_EQ(report_text(*back), report_text(r));
  EXPECT_TRUE(parse_report(report_text(PluginReport{})));
}

TEST(Report, names_of_drivers_forge_no_lines_and_need_no_end) {
  PluginReport r = two_devices();
  std::strcpy(r.devices[0].name, "a\ncounts 1 9 9 9\tb");
  std::memset(r.devices[1].driver, 'x', sizeof r.devices[1].driver);
  const auto back = parse_report(report_text(r));
  ASSERT_TRUE(back);
  EXPECT_STREQ(back->devices[0].name, "a counts 1 9 9 9 b");
  EXPECT_EQ(std::strlen(back->devices[1].driver), sizeof back->devices[1].driver - 1);
}

TEST(Report, that_is_cut_or_changed_is_none_or_still_sound) {
  const std::string whole = report_text(two_devices());
  for (size_t n = 0; n < whole.size(); ++n) {
    const auto cut = parse_report(whole.substr(0, n));
    EXPECT_EQ(cut.has_value(), n != 0 && whole[n - 1] == '\n') << n;  // fewer whole lines
  }
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string text = whole;
    for (int k = 0; k < 3; ++k) text[random() % text.size()] = static_cast<char>(random());
    const auto back = parse_report(text);
    EXPECT_TRUE(!back || back->devices.size() <= 3);
  }
  for (const char* text : {"", "\n", "counts 1 2 3\n", "counts 1 2 3 4 5\n", "counts 1 2 3 -4\n", "counts 1 2 3 4\ncounts 1 2 3 4\n", "counts 1 2 3 99999999999\n", "device \n", "nonsense\n"}) EXPECT_FALSE(parse_report(text)) << text;
}

TEST(Report, of_more_devices_than_are_believed_is_none) {
  PluginReport r = two_devices();
  r.devices.resize(kReportDevices, r.devices[0]);
  EXPECT_TRUE(parse_report(report_text(r)));
  r.devices.push_back(r.devices[0]);
  EXPECT_FALSE(parse_report(report_text(r)));
}

TEST(Report, says_whether_the_plugin_can_wait) {
  EXPECT_TRUE(can_wait(two_devices()));
  PluginReport r = two_devices();
  r.for_others = 1;
  EXPECT_FALSE(can_wait(r));
  r = two_devices(), r.ops = 1;
  EXPECT_FALSE(can_wait(r));
  r = two_devices(), r.devices[1].kind = TN_KIND_CPU;
  EXPECT_FALSE(can_wait(r));
  r = two_devices(), r.devices.clear();
  EXPECT_FALSE(can_wait(r));
}

TEST(Report, that_differs_says_in_what) {
  const PluginReport before = two_devices();
  PluginReport now = before;
  now.devices.pop_back();
  EXPECT_EQ(report_change(before, now), "it reports 1 device, its last trial gave 2");
  now = before, now.devices[1].mem_total_bytes = 5;
  EXPECT_EQ(report_change(before, now), "its device 1 is \"NVIDIA H200\" now, not what its last trial gave");
  now = before, now.kernels = 13;
  EXPECT_EQ(report_change(before, now), "it offers 13 kernels now, its last trial gave 12");
  now = before, now.devices[0].mem_free_bytes = 99;
  EXPECT_EQ(report_change(before, now), std::nullopt);
}
