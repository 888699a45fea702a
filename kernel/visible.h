// kernel/visible.h - which devices a runtime is to see: TENON_DEVICES, and the drivers' own filters on all routes.
//
//   VisibleFilter f;  f.parse("TENON_DEVICES", "cpu,sim:1,pci:0000:65:00.0", &diag)
//
// A filter that was given hides every device that none of its entries means. An entry that names hardware (UUID, PCI address)
// means all routes to it; one that names a place in the list means that route.
// Threads: the caller guards them (the runtime's device lock).
#pragma once
#include <tenon/runtime.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/device_name.h"

namespace tenon::kernel {

// A device that its own driver hides: the plugin does not report it, others may.
struct HiddenDevice {
  tn_device_info info;
  uint32_t plugin = 0;  // its entry's index
  std::string cause;    // "hidden by CUDA_VISIBLE_DEVICES=1"
};

class VisibleFilter {
 public:
  // TN_E_ARG, TN-DEVICE-008 with the first entry that is no name of a device. An empty text is no filter.
  tn_status parse(const std::string& source, const std::string& text, tn_diag* diag);
  bool given() const { return !names_.empty(); }
  bool means(const char* listed_as, const tn_device_info& info) const;

  // Of each entry the reason why it is hidden, "" = it is not. `physical` as in the entries.
  std::vector<std::string> judge(const std::vector<tn_device_entry>& entries, const std::vector<HiddenDevice>& by_drivers) const;
  // TN_E_NOT_FOUND, TN-DEVICE-007 with the first entry that means no device, and those there are.
  tn_status check(const std::vector<tn_device_entry>& entries, tn_diag* diag) const;

 private:
  std::string source_, text_;
  std::vector<DeviceName> names_;
  std::vector<std::string> words_;  // as written
};

}  // namespace tenon::kernel
