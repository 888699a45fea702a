// `tenon caps DEVICE`: what a device says about itself.
#include <tenon/caps.h>

#include <memory>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/json.h"
#include "tools/tenon/common/names.h"

namespace tenon::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : " ") + w;
  return text;
}

// The four words of instruction sets are one capability to a reader.
std::vector<std::string> instruction_sets(const std::vector<tn_cap>& caps) {
  uint64_t words[4] = {};
  for (const tn_cap& c : caps)
    if (c.key >= TN_CAPKEY_ISA_0 && c.key <= TN_CAPKEY_ISA_3) words[c.key - TN_CAPKEY_ISA_0] = c.v.u;
  return isa_names(words);
}

int run(Context& context, const std::string& spec) {
  context.device_spec = spec;
  context.policy = "require";  // another device's capabilities are no answer
  const Device device = context.device();
  const std::vector<tn_cap> caps = device_caps(context.handle(), device.id());
  const std::vector<std::string> isa = instruction_sets(caps);
  std::vector<std::vector<std::string>> table{{"CAPABILITY", "VALUE", "FROM"}};
  for (const tn_cap& cap : caps) {
    if (cap.key >= TN_CAPKEY_ISA_0 && cap.key <= TN_CAPKEY_ISA_3) continue;
    const CapText t = cap_text(cap);
    table.push_back({t.key, t.value, t.source});
    if (!context.json) continue;
    JsonRow row;
    row.add("device", device.name()).add("key", t.key);
    t.is_number ? row.add("value", t.number) : row.add("value", t.value);
    context.line(row.add("unit", t.unit).add("source", t.source).text());
  }
  if (context.json && !isa.empty()) context.line(JsonRow().add("device", device.name()).add("key", "isa").add("value", isa).add("unit", "").add("source", "driver").text());
  if (context.json) return kDone;
  context.line(context.bold(device.name()));
  print_table(context, table);
  if (!isa.empty()) context.line("instruction sets: " + joined(isa));
  return kDone;
}

Run setup(Args& args) {
  auto device = std::make_shared<std::string>("auto");
  args.positional("DEVICE", device.get(), "NAME:INDEX, as `tenon devices` shows it; auto when left out", false);
  return [device](Context& context) { return run(context, *device); };
}

}  // namespace

extern const Command command_caps{"caps", "Show the capabilities of one device.", "tenon caps cpu:0\ntenon caps cpu:0 --json", kUsesNothing, setup};

}  // namespace tenon::cli
