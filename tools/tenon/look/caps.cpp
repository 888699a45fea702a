// `tenon caps DEVICE`: what a device says about itself.
#include <tenon/caps.h>

#include <algorithm>
#include <memory>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/failure.h"
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

tn_rates_info kept_rates(tn_runtime* runtime, uint32_t device) {
  tn_rates_info info{};
  info.size = sizeof info;
  tn_diag diag{};
  diag.size = sizeof diag;
  if (tn_status s = tn_rates(runtime, device, &info, &diag)) throw_diag(diag, s);
  return info;
}

// Measures and keeps; what was known so far is replaced.
std::vector<std::string> measure_anew(Context& context, const Device& device, tn_rates_info* kept, std::vector<tn_cap>* caps) {
  if (!kept->path[0])  // known before the seconds are spent
    throw Failure(kFailed, "TN-CLI-013", "the measured rates cannot be kept", "tenon caps --measure", "neither XDG_CACHE_HOME nor HOME names a folder, or loader.cache is off", "export HOME=/some/folder");
  const Measured measured = measure(device);
  tn_diag diag{};
  diag.size = sizeof diag;
  if (tn_status s = tn_rates_keep(context.handle(), device.id(), measured.caps.data(), static_cast<uint32_t>(measured.caps.size()), &diag)) throw_diag(diag, s);
  caps->resize(caps->size() - kept->n_caps);
  caps->insert(caps->end(), measured.caps.begin(), measured.caps.end());
  kept->state = TN_RATES_USED;
  return measured.left_out;
}

// What is measured stands beside what the driver says, and replaces what was only guessed.
void drop_guesses(std::vector<tn_cap>* caps) {
  const std::vector<tn_cap> all = *caps;
  std::erase_if(*caps, [&](const tn_cap& c) {
    return c.provenance == TN_FROM_GUESS && std::any_of(all.begin(), all.end(), [&](const tn_cap& m) { return m.key == c.key && m.provenance == TN_FROM_MEASURED; });
  });
}

int run(Context& context, const Options& options) {
  context.device_spec = options.device;
  context.policy = "require";  // another device's capabilities are no answer
  const Device device = context.device();
  std::vector<tn_cap> caps = device_caps(context.handle(), device.id());
  tn_rates_info kept = kept_rates(context.handle(), device.id());
  std::vector<std::string> left_out;
  if (options.measure) left_out = measure_anew(context, device, &kept, &caps);
  drop_guesses(&caps);
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
  if (context.json && kept.state == TN_RATES_IGNORED) context.line(JsonRow().add("device", device.name()).add("key", "rates").add("value", "ignored").add("unit", "").add("source", "").add("note", kept.note).text());
  if (context.json) return kDone;
  context.line(context.bold(device.name()));
  print_table(context, table);
  if (!isa.empty()) context.line("instruction sets: " + joined(isa));
  for (const std::string& one : left_out) context.line("not measured: " + one.substr(0, one.find('\n')));
  const std::string again = "tenon caps " + std::string(device.name()) + " --measure";
  if (options.measure) context.line(std::string("measured rates are kept in ") + kept.path + "; estimates go by them from the next start on");
  else if (kept.state == TN_RATES_USED) context.line(std::string("measured on ") + kept.when + "; again: " + again);
  else if (kept.state == TN_RATES_IGNORED) context.line(context.warn("note") + ": kept rates are ignored: " + kept.note + "; anew: " + again);
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
