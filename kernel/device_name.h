// kernel/device_name.h - how people name devices: by place in the list, by UUID, by PCI address.
//
//   "cuda:1", "cuda"                              a plugin's device, or (index -1) the plugin alone
//   "uuid:5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a"   with or without the dashes
//   "pci:0000:65:00.0", "pci:65:00.0"             domain:bus:device.function, in hexadecimal
// UUID and address stay when cards are added, when drivers order them anew, and from route to route. All functions are pure.
#pragma once
#include <tenon/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace tenon::kernel {

struct DeviceName {
  enum class By { List, Uuid, Pci } by = By::List;
  std::string plugin;  // List: "cuda"
  int index = -1;      // List: -1 = not given
  uint8_t uuid[16] = {};
  uint32_t pci_domain = 0, pci_bdf = 0;
};

// Nothing when the text names no device in any of these ways.
std::optional<DeviceName> parse_device_name(const std::string& text);

// Whether the route is meant. A name without an index means all devices of the plugin; a UUID that is not trusted and an
// address of a partition, which is that of the whole, are no identity.
bool names_device(const DeviceName& name, const char* listed_as, const tn_device_info& info);

bool has_uuid(const tn_device_info& info);
bool has_address(const tn_device_info& info);
std::string uuid_text(const tn_device_info& info);     // "uuid:..."
std::string address_text(const tn_device_info& info);  // "pci:..."

}  // namespace tenon::kernel
