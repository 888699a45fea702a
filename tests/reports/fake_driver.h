// tests/reports/fake_driver.h - a plugin made at run time, linked into the process: any devices, any failure at any stage.
//
//   FakeDriver gpu{"org.example.lab", {{.name = "big", .total = 24 * kGiB}}};
//   ASSERT_EQ(gpu.link(runtime), TN_OK);            // devices lab:0, ...
//   gpu.fail("launch", TN_E_DEVICE_LOST, "fell off the bus");
//
// Its kernel computes programs of one instruction on f32: add, sub, mul, neg, max. Must outlive the runtime; at most
// kMost exist at once. One thread.
#pragma once
#include <tenon/plugin.h>
#include <tenon/runtime.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

struct FakeDriver;
struct tn_device { FakeDriver* driver; uint32_t index; };
struct tn_dev_queue { FakeDriver* driver; uint32_t index; };
struct tn_instance { FakeDriver* driver; };

inline constexpr uint64_t kGiB = UINT64_C(1) << 30;
inline constexpr uint32_t kFakeKind = 0x80000000u | 4711;  // a vendor's own kind

struct FakeDevice {
  std::string name = "fake";
  uint32_t flags = 0;  // TN_DEVICE_INLINE is always added: work is done when a call returns
  uint64_t total = 8 * kGiB, free = 8 * kGiB;
  uint32_t pci_bdf = 0;
  uint8_t uuid = 0;  // every byte of a trusted UUID but the first; 0 = none
  uint32_t kind = kFakeKind;
};

struct FakeDriver {
  static constexpr size_t kMost = 8;
  static constexpr const char* kStages[] = {"open", "kernels", "count devices", "list devices"};  // those of loading

  FakeDriver(std::string id, std::vector<FakeDevice> devices);
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  // Later calls of that stage (also: "device open", "launch") answer so. TN_OK: as usual again.
  void fail(const std::string& stage, tn_status status, std::string words);
  tn_status link(tn_runtime* runtime, tn_diag* diag = nullptr);

  std::string id;
  std::vector<FakeDevice> devices;
  std::vector<uint32_t> launches;  // per device
  std::map<std::string, std::pair<tn_status, std::string>> failures;

  // Behind the table's functions.
  tn_status at(const char* stage, tn_diag* diag) const;
  tn_instance instance{};
  std::vector<tn_device> opened;
  std::vector<tn_dev_queue> queues;
  std::string kernel_name;
  std::vector<tn_constraint> needs;
  tn_kernel_info row{};
  size_t place = 0;
};
