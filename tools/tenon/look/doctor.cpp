// `tenon doctor`: what this machine can do, what is missing, and what to type to fix it.
#include <algorithm>
#include <functional>
#include <memory>
#include <tenon/core/error.hpp>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/failure.h"
#include "tools/tenon/common/json.h"
#include "tools/tenon/look/capture.h"
#include "tools/tenon/look/checks.h"
#include "tools/tenon/look/report.h"

namespace tenon::cli {
namespace {

std::string mark(const Context& context, State state) {
  switch (state) {
    case State::good: return context.good("ok     ");
    case State::note: return context.dim("note   ");
    case State::warning: return context.warn("warning");
    default: return context.bad("missing");
  }
}

void print(const Context& context, const Findings& findings) {
  size_t width = 0;
  for (const Finding& f : findings) width = std::max(width, f.check.size());
  for (const Finding& f : findings) {
    context.line(mark(context, f.state) + "  " + f.check + std::string(width - f.check.size() + 2, ' ') + f.value);
    if (f.reason != Reason::none) context.line(std::string("           reason: ") + reason_name(f.reason));
    if (!f.why.empty()) context.line("           why:    " + f.why);
    if (!f.advice.empty()) context.line("           try:    " + f.advice);
  }
}

void print_json(const Context& context, const Findings& findings) {
  for (const Finding& f : findings)
    context.line(JsonRow().add("check", f.check).add("state", state_name(f.state)).add("required", f.required)
                     .add("value", f.value).add("why", f.why).add("try", f.advice).add("reason", reason_name(f.reason)).add("detail", f.detail).text());
}

// A check that fails is a finding, and the others go on.
void guarded(const std::function<void(Findings*)>& check, Findings* findings) {
  try {
    check(findings);
  } catch (const Error& error) {
    findings->push_back({"check", State::warning, false, error.summary(), error.why(), error.advice()});
  }
}

// A runtime that does not start is itself the finding.
bool examine_runtime(Context& context, Findings* findings) {
  try {
    context.handle();
  } catch (const Error& error) {
    findings->push_back({"runtime", State::missing, true, error.summary(), error.why(), error.advice()});
    return false;
  }
  findings->push_back({"runtime", State::good, false, "starts, ABI " + std::to_string(tn_version() >> 16) + "." + std::to_string(tn_version() & 0xFFFF), "", ""});
  return true;
}

Findings examine(Context& context, const DriverOptions& options) {
  Findings findings;
  check_memory(context, &findings);
  if (examine_runtime(context, &findings))
    for (auto check : {check_processor, check_plugins, check_devices}) guarded([&](Findings* out) { check(context, out); }, &findings);
  guarded([&](Findings* out) { check_drivers(context, options, out); }, &findings);
  check_data(context, &findings);
  return findings;
}

// A slip must not turn into a driver that nobody misses, nor into one that nobody waits for.
void check_options(const DriverOptions& options) {
  if (!(options.timeout_s > 0 && options.timeout_s <= 3600))
    throw Failure(kUsage, "TN-CLI-002", "no driver can answer in that time", "tenon doctor --driver-timeout", "it is a number of seconds above 0 and at most 3600", "tenon doctor --driver-timeout 10");
  for (const std::string& name : options.required)
    if (name != "opencl" && name != "vulkan" && name != "cuda" && name != "rocm")
      throw Failure(kUsage, "TN-CLI-002", "no driver is called \"" + name + "\"", "tenon doctor --require", "opencl, vulkan, cuda and rocm are known", "tenon doctor --require opencl");
}

int run(Context& context, const DriverOptions& options, const std::string& report) {
  check_options(options);
  const Findings findings = examine(context, options);
  if (!report.empty()) write_report(context, findings, report);
  const auto count = [&](State s) { return std::count_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.state == s; }); };
  const bool broken = std::any_of(findings.begin(), findings.end(), [](const Finding& f) { return f.state == State::missing && f.required; });
  if (context.json) {
    print_json(context, findings);
  } else {
    print(context, findings);
    const auto warnings = count(State::warning);
    context.line();
    context.line(broken ? context.bad("Something that is required is missing.") : warnings ? "Tenon runs here; " + std::to_string(warnings) + (warnings == 1 ? " thing" : " things") + " could be better." : context.good("Tenon runs here."));
  }
  if (!report.empty() && !context.json) context.line("The report is in " + report + "; it names no user, host or home folder. Read it before you pass it on.");
  return broken ? kMissing : kDone;
}

Run setup(Args& args) {
  auto report = std::make_shared<std::string>();
  args.option("--report", report.get(), "also write one file to attach to a bug report");
  auto capture = std::make_shared<std::string>();
  args.option("--capture", capture.get(), "also write this machine as data, for `tenon why-not --machine` elsewhere");
  auto options = std::make_shared<DriverOptions>();
  args.option("--require", &options->required, "opencl, vulkan, cuda or rocm: end with 3 unless its driver works; may be given several times");
  args.option("--driver-timeout", &options->timeout_s, "seconds that each stage of a driver may take");
  args.flag("--again", &options->again, "start the drivers again though their answers are kept");
  return [report, capture, options](Context& context) {
    const int code = run(context, *options, *report);
    save_capture(context, *capture);
    return code;
  };
}

}  // namespace

const char* state_name(State state) {
  static constexpr const char* kStates[] = {"ok", "note", "warning", "missing"};
  return kStates[static_cast<int>(state)];
}

extern const Command command_doctor{"doctor", "Say what this machine can do, what is missing, and what to type to fix it.", "tenon doctor\ntenon doctor --json\ntenon doctor --require vulkan\ntenon doctor --report report.jsonl\ntenon doctor --capture machine.json", kUsesNothing, setup};

}  // namespace tenon::cli
