// `tenon devices`: every route to every device, usable or not.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <iterator>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/json.h"
#include "tools/tenon/common/names.h"

namespace tenon::cli {
namespace {

// As the selectors take them; "" where the driver gives none.
std::string uuid_of(const tn_device_info& info) {
  const auto all = [&](uint8_t byte) { return std::all_of(std::begin(info.uuid), std::end(info.uuid), [&](uint8_t b) { return b == byte; }); };
  if (!(info.flags & TN_DEVICE_UUID_TRUSTED) || all(0) || all(0xFF)) return "";
  std::string text = "uuid:";
  for (size_t k = 0; k < sizeof info.uuid; ++k) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%s%02x", k == 4 || k == 6 || k == 8 || k == 10 ? "-" : "", info.uuid[k]);
    text += digits;
  }
  return text;
}

std::string address_of(const tn_device_info& info) {
  if (!info.pci_domain && !info.pci_bdf) return "";
  char text[40];
  std::snprintf(text, sizeof text, "pci:%04x:%02x:%02x.%x", info.pci_domain, info.pci_bdf >> 8 & 0xFF, info.pci_bdf >> 3 & 0x1F, info.pci_bdf & 7);
  return text;
}

void print_json(const Context& context, const std::vector<tn_device_entry>& devices, const std::vector<tn_plugin_entry>& plugins) {
  for (const tn_device_entry& d : devices) {
    JsonRow row;
    row.add("name", d.name).add("usable", d.verdict == 0).add("verdict", d.verdict).add("cause", d.cause);
    row.add("kind", kind_name(d.info.kind)).add("plugin", d.plugin < plugins.size() ? plugins[d.plugin].id : "");
    row.add("uuid", uuid_of(d.info)).add("pci", address_of(d.info));
    row.add("physical", d.physical).add("hardware", d.info.name).add("driver", d.info.driver);
    row.add("memory_bytes", d.info.mem_total_bytes).add("memory_free_bytes", d.info.mem_free_bytes);
    row.add("emulated", (d.info.flags & TN_DEVICE_EMULATED) != 0);
    row.add("dtypes", dtype_names(d.info.dtype_compute));
    context.line(row.text());
  }
}

// Where another route leads to the same hardware: its memory is there once.
std::string same_hardware(const tn_device_entry& d, const std::vector<tn_device_entry>& devices) {
  for (const tn_device_entry& other : devices)
    if (other.device == d.physical && d.physical != d.device) return std::string(d.info.flags & TN_DEVICE_EMULATED ? ", runs on " : ", the same as ") + other.name;
  return "";
}

int run(Context& context) {
  const std::vector<tn_device_entry> devices = device_entries(context.handle());
  const std::vector<tn_plugin_entry> plugins = plugin_entries(context.handle());
  if (context.json) return print_json(context, devices, plugins), kDone;
  std::vector<std::vector<std::string>> table{{"NAME", "STATE", "MEMORY", "PLUGIN", "HARDWARE"}};
  for (const tn_device_entry& d : devices) {
    const bool emulated = d.info.flags & TN_DEVICE_EMULATED;
    table.push_back({d.name, d.verdict ? context.bad("unusable") : context.good(emulated ? "emulated" : "usable"),
                     d.info.mem_total_bytes ? bytes_text(static_cast<double>(d.info.mem_total_bytes)) : "-",
                     d.plugin < plugins.size() ? plugins[d.plugin].id : "-", d.verdict ? d.cause : d.info.name + same_hardware(d, devices)});
  }
  print_table(context, table);
  // What stays when numbers change, and is taken wherever a device is named.
  std::vector<std::vector<std::string>> names;
  for (const tn_device_entry& d : devices)
    if (!uuid_of(d.info).empty() || !address_of(d.info).empty()) names.push_back({d.name, address_of(d.info), uuid_of(d.info)});
  if (names.empty()) return kDone;
  context.line();
  names.insert(names.begin(), {"NAME", "ADDRESS", "UUID"});
  print_table(context, names);
  return kDone;
}

Run setup(Args&) { return run; }

}  // namespace

extern const Command command_devices{"devices", "List the devices of this machine and whether they can be used.",
                                     "tenon devices\ntenon devices --json", kUsesNothing, setup};

}  // namespace tenon::cli
