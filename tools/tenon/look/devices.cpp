// `tenon devices`: every route to every device, usable or not.
#include <bit>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/json.h"
#include "tools/tenon/common/names.h"

namespace tenon::cli {
namespace {

void print_json(const Context& context, const std::vector<tn_device_entry>& devices, const std::vector<tn_plugin_entry>& plugins) {
  for (const tn_device_entry& d : devices) {
    JsonRow row;
    row.add("name", d.name).add("usable", d.verdict == 0).add("verdict", d.verdict).add("cause", d.cause);
    row.add("kind", kind_name(d.info.kind)).add("plugin", d.plugin < plugins.size() ? plugins[d.plugin].id : "");
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
  return kDone;
}

Run setup(Args&) { return run; }

}  // namespace

extern const Command command_devices{"devices", "List the devices of this machine and whether they can be used.",
                                     "tenon devices\ntenon devices --json", kUsesNothing, setup};

}  // namespace tenon::cli
