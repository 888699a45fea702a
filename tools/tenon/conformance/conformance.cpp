// `tenon conformance`: holds a plugin to the six levels of the conformance kit.
#include "tools/conformance/session.h"

#include <filesystem>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/failure.h"
#include "tools/tenon/conformance/find_plugin.h"

namespace tenon::cli {
namespace {

namespace kit = tenon::conformance;

struct Choices {
  std::string plugin, device, lists;
  int64_t level = 3, only_level = 0, seed = 1, rounds = 2000, timeout_s = 600;
  std::vector<std::string> only, config;
  bool full = false;
};

kit::Options options_of(Context& context, const Choices& c) {
  kit::Options o;
  if (c.plugin.empty() == c.device.empty())
    throw Failure(kUsage, "TN-CLI-030", "conformance wants one plugin", "", c.plugin.empty() ? "neither --plugin nor --device is given" : "both --plugin and --device are given",
                  "tenon conformance --plugin FILE --level 3");
  const Target target = c.plugin.empty() ? plugin_of_device(context, c.device) : Target{std::filesystem::absolute(c.plugin).string(), 0};
  o.plugin = target.file, o.device = target.index;
  if (!o.plugin.empty() && !std::filesystem::exists(o.plugin))
    throw Failure(kMissing, "TN-CLI-031", "there is no such plugin file", o.plugin, "nothing is at this path", "give the path of a libtenon_backend_NAME.so");
  o.level = static_cast<int>(c.level), o.only_level = static_cast<int>(c.only_level), o.seed = static_cast<uint64_t>(c.seed);
  o.rounds = static_cast<uint32_t>(c.rounds), o.timeout_s = static_cast<uint32_t>(c.timeout_s), o.only = c.only, o.full = c.full;
  for (const std::string& entry : c.config) {
    const size_t at = entry.find('=');
    if (at == std::string::npos || at == 0)
      throw Failure(kUsage, "TN-CLI-032", "a --config entry is no key=value", "", "got \"" + entry + "\"", "--config sim.devices=2");
    o.config[entry.substr(0, at)] = entry.substr(at + 1);
  }
  const std::string beside = o.plugin + ".conformance.json";
  const std::string file = !c.lists.empty() ? c.lists : !o.plugin.empty() && std::filesystem::exists(beside) ? beside : "";
  try {
    if (!file.empty()) o.lists = kit::read_lists(file);
  } catch (const std::runtime_error& e) {
    throw Failure(kUsage, "TN-CLI-033", "the lists of exceptions cannot be used", file, e.what(), "an object with tags, never and not_yet, each entry with a check or a tag and a why");
  }
  return o;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string state_text(const Context& context, kit::State state) {
  switch (state) {
    case kit::State::Passed: return context.good("passed");
    case kit::State::Failed: return context.bad("FAILED");
    case kit::State::NotYet: return context.warn("not yet");
    default: return context.dim(kit::state_name(state));
  }
}

void print_human(const Context& context, const kit::Report& report) {
  context.line(context.bold(report.plugin_id.empty() ? "(no record)" : report.plugin_id) + (report.plugin_version.empty() ? "" : " " + report.plugin_version) + "  " + report.path);
  std::vector<std::vector<std::string>> table{{"LEVEL", "CHECK", "RESULT", "TRIED", "SECONDS", ""}};
  for (const kit::Check& c : report.checks) {
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.2f", c.seconds);
    const std::string remark = c.state == kit::State::Failed || c.state == kit::State::Passed ? "" : first_line(c.detail);
    table.push_back({std::to_string(c.level), c.id, state_text(context, c.state), std::to_string(c.tried), seconds, remark});
  }
  print_table(context, table);
  for (const kit::Check& c : report.checks)
    if (c.state == kit::State::Failed) context.line("\n" + context.bad("FAILED ") + context.bold(c.id) + "\n  " + c.detail);
  for (const kit::Check& c : report.checks)
    for (const std::string& note : c.notes)
      if (note.find("says yes") != std::string::npos) context.line(context.dim("note " + c.id + ": " + note));
  context.line();
  for (int level = 1; level <= report.level; ++level) {
    bool run = false;
    for (const kit::Check& c : report.checks) run |= c.level == level;
    if (run) context.line("level " + std::to_string(level) + " " + kit::level_name(level) + ": " + (report.passed_level(level) ? context.good("passed") : context.bad("FAILED")));
  }
}

int run(Context& context, const Choices& c) {
  kit::Options o = options_of(context, c);
  if (context.terminal && !context.json) o.progress = [](const std::string& id) { std::fprintf(stderr, "\r\033[K%s", id.c_str()); };
  const kit::Report report = kit::run(o);
  if (o.progress) std::fputs("\r\033[K", stderr);
  if (context.json) context.line(kit::json_text(report));
  else print_human(context, report);
  return report.passed() ? kDone : kFailed;
}

Run setup(Args& args) {
  auto c = std::make_shared<Choices>();
  args.option("--plugin", &c->plugin, "the plugin's file");
  args.option("--device", &c->device, "NAME:INDEX instead: the plugin that offers this device; cpu:0 is the linked reference");
  args.option("--level", &c->level, "run levels 1 to this: 1 load and ABI, 2 memory, 3 numerics, 4 honesty, 5 threads, 6 faults", 1, 6);
  args.option("--only-level", &c->only_level, "this level alone", 0, 6);
  args.option("--only", &c->only, "checks whose id begins so; may be given several times");
  args.option("--lists", &c->lists, "JSON file of tags, never and not_yet; default: FILE.conformance.json beside the plugin");
  args.option("--config", &c->config, "key=value that the plugin reads through host->config; may be given several times");
  args.option("--seed", &c->seed, "seed of the random calls of levels 4 and 5", 0);
  args.option("--rounds", &c->rounds, "random calls of level 4, over all kernels", 1, 10000000);
  args.option("--timeout", &c->timeout_s, "seconds a level may take", 1, 86400);
  args.flag("--full", &c->full, "every combination instead of a fixed sample");
  return [c](Context& context) { return run(context, *c); };
}

}  // namespace

extern const Command command_conformance{"conformance", "Hold a plugin to the contract, in six levels, and say exactly where it fails.",
                                         "tenon conformance --plugin build/libtenon_backend_acme.so --level 3\n"
                                         "tenon conformance --device sim:0 --level 6 --json\n"
                                         "tenon conformance --plugin acme.so --only 3.values.acme.matmul --full",
                                         kUsesNothing, setup};

}  // namespace tenon::cli
