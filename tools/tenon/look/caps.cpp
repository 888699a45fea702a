// `tenon caps DEVICE`: what a device says about itself.
#include <tenon/caps.h>

#include <memory>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/json.h"
#include "tools/tenon/common/names.h"
#include "tools/tenon/look/measure.h"

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

struct Options {
  std::string device = "auto";
  bool measure = false;
};

// What is measured stands beside what the driver says, and replaces what was only guessed.
void add_measured(std::vector<tn_cap>* caps, const Measured& measured) {
  for (const tn_cap& m : measured.caps) {
    std::erase_if(*caps, [&](const tn_cap& c) { return c.key == m.key && c.provenance == TN_FROM_GUESS; });
    caps->push_back(m);
  }
}

int run(Context& context, const Options& options) {
  context.device_spec = options.device;
  context.policy = "require";  // another device's capabilities are no answer
  const Device device = context.device();
  std::vector<tn_cap> caps = device_caps(context.handle(), device.id());
  const std::string what = measured_identity(context, device);
  Measured measured;
  std::string kept_at;
  if (options.measure) {
    kept_at = measured_path(what);  // known before the seconds are spent
    measured = measure(device);
    save_measured(kept_at, what, measured);
  } else {
    measured = load_measured(what);
  }
  add_measured(&caps, measured);
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
  for (const std::string& left_out : measured.left_out) context.line("not measured: " + left_out.substr(0, left_out.find('\n')));
  if (!kept_at.empty()) context.line("measured rates are kept in " + kept_at);
  else if (!measured.when.empty()) context.line("measured on " + measured.when + "; again: tenon caps " + std::string(device.name()) + " --measure");
  return kDone;
}

Run setup(Args& args) {
  auto options = std::make_shared<Options>();
  args.positional("DEVICE", &options->device, "NAME:INDEX, as `tenon devices` shows it; auto when left out", false);
  args.flag("--measure", &options->measure, "measure bandwidths and rates (some seconds) and keep them");
  return [options](Context& context) { return run(context, *options); };
}

}  // namespace

extern const Command command_caps{"caps", "Show the capabilities of one device.", "tenon caps cpu:0\ntenon caps cpu:0 --measure\ntenon caps cpu:0 --json", kUsesNothing, setup};

}  // namespace tenon::cli
