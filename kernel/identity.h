// kernel/identity.h - which routes (devices as plugins report them) lead to the same piece of hardware.
#pragma once
#include <tenon/types.h>

#include <cstdint>
#include <vector>

namespace tenon::kernel {

struct Route {
  const tn_device_info* info;
  uint32_t plugin;  // routes of one plugin are never the same piece: the plugin tells its devices apart itself
  uint32_t device;  // runtime-wide id
};

// The id of each route's piece of hardware: the least device id of all routes that lead to it. Two routes of different
// plugins meet when they give the same UUID, both trusted, nonzero and unique within their plugin; else, when one of them
// has no such UUID, at the same PCI address, unless either is a partition (those share the address of the whole).
// An emulated device is a piece of the first CPU that is not emulated itself.
std::vector<uint32_t> physical_ids(const std::vector<Route>& routes);

// Whether two reports of one device say the same, free memory aside.
bool same_report(const tn_device_info& a, const tn_device_info& b);

}  // namespace tenon::kernel
