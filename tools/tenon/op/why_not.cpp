// `tenon why-not DEVICE OP SPECS...`: what keeps each kernel from a call, here or on a machine that was captured.
#include <algorithm>
#include <memory>
#include <tenon/core/error.hpp>
#include <tenon/tenon.hpp>
#include <utility>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/failure.h"
#include "tools/tenon/common/json.h"
#include "tools/tenon/common/names.h"
#include "tools/tenon/op/call.h"
#include "tools/tenon/op/captured.h"
#include "tools/tenon/op/op_table.h"
#include "tools/tenon/op/rows.h"

namespace tenon::cli {
namespace {

struct Options {
  std::string machine;
  Question question;  // words: DEVICE, OP, SPECS
};

// A device that runs nothing at all, and what is known of the cause.
struct Unusable {
  std::string device, verdict, why, advice;
};

struct Row {
  std::string takes;  // "yes", "no", "unknown"
  std::string text, plugin;
  tn_candidate candidate{};
};

[[noreturn]] void unknown_device(const std::string& name, const std::vector<std::string>& have, const std::string& where) {
  std::string list;
  for (const std::string& n : have) list += (list.empty() ? "" : ", ") + n;
  const std::string near = nearest_name(name, have.data(), have.size());
  throw Failure(kMissing, "TN-CLI-014", "no device is called \"" + name + "\"", where, list.empty() ? "there are no devices" : "there are " + list,
                !near.empty() ? "use " + near : where.empty() ? "`tenon devices` lists them" : "use one of them");
}

std::string last_part(const std::string& id) {
  const size_t dot = id.rfind('.');
  return dot == std::string::npos ? id : id.substr(dot + 1);
}

std::string load_id(uint32_t code) {
  char text[24];
  std::snprintf(text, sizeof text, "TN-LOAD-%03u", code);
  return text;
}

// "cuda:0" without such a device, but with a plugin of that name which did not start.
bool refused_plugin(const std::string& device, const std::string& id, const std::string& path, uint32_t code, const std::string& cause, Unusable* out) {
  if (code == 0 || last_part(id) != device.substr(0, device.find(':'))) return false;
  *out = {device, load_code_name(code), "plugin " + id + (path.empty() ? "" : " (" + path + ")") + " is not in use: " + (cause.empty() ? load_code_name(code) : cause), "tenon explain " + load_id(code)};
  return true;
}

std::string status_words(uint32_t verdict) { return tn_status_text(-static_cast<tn_status>(verdict)); }

void print_unusable(const Context& context, const Unusable& u) {
  if (context.json) return context.line(JsonRow().add("device", u.device).add("usable", false).add("verdict", u.verdict).add("why", u.why).add("try", u.advice).text());
  context.line(context.bad(u.device + " runs nothing") + ": " + u.verdict);
  context.line("  why:   " + u.why);
  context.line("  try:   " + u.advice);
}

void print_rows(const Context& context, const std::string& device, const std::string& call, const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> table{{"KERNEL", "PLUGIN", "TAKES IT", "WHY"}};
  for (const Row& r : rows) {
    table.push_back({r.candidate.kernel, r.plugin, r.takes == "yes" ? context.good(r.takes) : r.takes == "no" ? context.bad(r.takes) : context.warn(r.takes), r.text});
    if (!context.json) continue;
    JsonRow out;
    out.add("device", device).add("usable", true).add("call", call).add("takes", r.takes);
    add_row(&out, r.candidate, r.plugin);
    context.line(out.add("constraint", r.candidate.constraint).add("text", r.text).text());
  }
  if (context.json) return;
  if (rows.empty()) context.line("no candidate: a view, or an op that no plugin offers here");
  else print_table(context, table);
}

bool conditions_hold(const tn_candidate& row) { return row.why == TN_WHY_WON || row.why == TN_WHY_SLOWER || row.why == TN_WHY_TIER || row.why == TN_WHY_NAME; }

std::vector<tn_candidate> candidates(tn_runtime* runtime, const Call& call) {
  return read_list<tn_candidate>([&](auto... a) { return tn_why(runtime, &call.spec, a...); });
}

// ---- this machine ---------------------------------------------------------------------------------------------------

bool usable_here(Context& context, const std::string& name, uint32_t* device, Unusable* out) {
  tn_runtime* runtime = context.handle();
  std::vector<std::string> have;
  const tn_device_entry* found = nullptr;
  const std::vector<tn_device_entry> all = device_entries(runtime);
  for (const tn_device_entry& d : all) {
    have.push_back(d.name);
    if (name == d.name && (!found || !d.verdict)) found = &d;
  }
  tn_diag diag{};
  diag.size = sizeof diag;
  if (!found) {
    if (tn_device_find(runtime, name.c_str(), TN_POLICY_REQUIRE, device, &diag) == TN_OK) return true;  // by another kind of name
    for (const tn_plugin_entry& p : plugin_entries(runtime))
      if (refused_plugin(name, p.id, p.path, p.code, p.cause, out)) return false;
    unknown_device(name, have, "");
  }
  if (found->verdict) return *out = {name, status_words(found->verdict), found->cause, "tenon doctor"}, false;
  if (tn_status s = tn_device_find(runtime, name.c_str(), TN_POLICY_REQUIRE, device, &diag)) {
    try {
      throw_diag(diag, s);
    } catch (const Error& error) {  // it is there and does not open: that is the answer
      return *out = {name, tn_status_text(s), error.summary() + (error.why().empty() ? "" : ": " + error.why()), error.advice().empty() ? "tenon doctor" : error.advice()}, false;
    }
  }
  return true;
}

int ask_here(Context& context, const std::string& name, const Question& question) {
  context.open_every_plugin();
  uint32_t device = 0;
  Unusable cause;
  if (!usable_here(context, name, &device, &cause)) return print_unusable(context, cause), kDone;
  const Call call = read_call(context.handle(), device, TN_CALL_REQUIRE, question);
  const std::string text = call_text(context.handle(), call);
  if (!context.json) context.line(text + "  on " + name);
  const std::vector<tn_plugin_entry> plugins = plugin_entries(context.handle());
  std::vector<Row> rows;
  for (const tn_candidate& c : candidates(context.handle(), call)) rows.push_back({conditions_hold(c) ? "yes" : "no", reason_text(c), plugin_of(c, plugins), c});
  print_rows(context, name, text, rows);
  return kDone;
}

// ---- a machine elsewhere --------------------------------------------------------------------------------------------

const DeviceRecord& usable_there(const Machine& machine, const std::string& name, const std::string& file, Unusable* out) {
  const DeviceRecord* found = nullptr;
  std::vector<std::string> have;
  for (const DeviceRecord& d : machine.devices) {
    have.push_back(d.name);
    if (name == d.name && (!found || !d.verdict)) found = &d;
  }
  if (!found) {
    static const DeviceRecord none;
    for (const PluginRecord& p : machine.plugins)
      if (refused_plugin(name, p.id, p.path, p.code, p.cause, out)) return none;
    unknown_device(name, have, file);
  }
  if (found->verdict) *out = {name, status_words(found->verdict), found->cause, "tenon doctor, on that machine"};
  return *found;
}

// What the conditions leave open is unknown: what supports() says, and every cost.
Row judged(const CapturedRuntime& captured, tn_candidate c) {
  Row row{"no", reason_text(c), captured.plugin_of(c), c};
  if (conditions_hold(c)) {
    const KernelRecord* kernel = captured.kernel_of(c);
    const bool sure = kernel && !kernel->refines;
    row.takes = sure ? "yes" : "unknown";
    row.text = sure     ? "its conditions hold; its cost is unknown here"
               : kernel ? "its conditions hold; its own supports() can only be asked on that machine"
                        : "each part has a kernel whose conditions hold; what these say themselves can only be asked on that machine";
    row.candidate.why = TN_WHY_WON;
    row.candidate.reason[0] = 0;
  }
  row.candidate.est_ns = -1;
  row.candidate.source = 0;
  return row;
}

void say_version(const Context& context, const Machine& machine) {
  const std::string here = std::to_string(tn_version() >> 16) + "." + std::to_string(tn_version() & 0xFFFF);
  if (machine.abi != here) print_warning(context, "the machine was captured with ABI " + machine.abi + ", this command speaks " + here + ": ops may differ");
}

int ask_there(Context& context, const std::string& name, const Question& question, const std::string& file) {
  const io::Result<Machine> read = read_machine(file);
  throw_if_failed(read.ok() ? io::Status{} : read.status(), Where{"", 0});
  const Machine& machine = *read;
  say_version(context, machine);
  Unusable cause;
  const DeviceRecord& record = usable_there(machine, name, file, &cause);
  if (!cause.device.empty()) return print_unusable(context, cause), kDone;
  const CapturedRuntime captured(machine);
  const Call call = read_call(captured.handle(), captured.device(record), TN_CALL_REQUIRE, question);
  const std::string text = call_text(captured.handle(), call);
  if (!context.json) context.line(text + "  on " + name + " (" + record.hardware + ") of " + file);
  std::vector<Row> rows;
  for (const tn_candidate& c : candidates(captured.handle(), call)) rows.push_back(judged(captured, c));
  // The core put those that hold in the order of estimates, which mean nothing here.
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    if ((a.takes == "no") != (b.takes == "no")) return b.takes == "no";
    return a.takes != "no" && std::pair(a.plugin, std::string(a.candidate.kernel)) < std::pair(b.plugin, std::string(b.candidate.kernel));
  });
  print_rows(context, name, text, rows);
  return kDone;
}

int run(Context& context, const Options& options) {
  if (options.question.words.size() < 2)
    throw Failure(kUsage, "TN-CLI-002", "an op is missing", "", "a device is given, and nothing to ask about it", "tenon why-not cpu:0 matmul f32[8,8] f32[8,8]");
  const std::string device = options.question.words[0];
  Question question = options.question;
  question.words.erase(question.words.begin());
  need_op_page(question.words[0]);
  const std::string full = device.find(':') == std::string::npos ? device + ":0" : device;
  return options.machine.empty() ? ask_here(context, full, question) : ask_there(context, full, question, options.machine);
}

Run setup(Args& args) {
  auto options = std::make_shared<Options>();
  args.positionals("CALL", &options->question.words, "DEVICE, OP, then one spec an operand: cuda:0 matmul f32[512,512] f32[512,512]");
  declare_options(args, &options->question);
  args.option("--machine", &options->machine, "ask about the machine in this file, which `tenon doctor --capture FILE` has written");
  return [options](Context& context) { return run(context, *options); };
}

}  // namespace

extern const Command command_why_not{"why-not", "Say what keeps each kernel of a device from a call, here or on a captured machine.",
                                     "tenon why-not cpu:0 matmul bf16[64,64] bf16[64,64]\n"
                                     "tenon why-not cuda:0 softmax f32[64,1000] --machine lab.json\n"
                                     "tenon why-not sim:0 add f64[16] f64[16] --json",
                                     kUsesNothing, setup};

}  // namespace tenon::cli
