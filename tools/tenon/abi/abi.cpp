// `tenon abi check`: one plugin file against the contract and this host, with the loader's own verdict from a
// child process.
#include <tenon/runtime.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "loader/cold/elf.h"
#include "tools/conformance/elf_symbols.h"
#include "tools/tenon/abi/verdict.h"
#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/failure.h"
#include "tools/tenon/common/json.h"
#include "tools/tenon/common/names.h"

namespace tenon::cli {
namespace {

struct Choices {
  std::string action, file;
  double limit_s = 150;  // the loader's trial gives each of its nine stages 10 s
};

std::string abi_text(uint32_t abi) { return std::to_string(abi >> 16) + "." + std::to_string(abi & 0xFFFF); }

std::string code_id(uint32_t code) {
  char text[32];
  std::snprintf(text, sizeof text, "TN-LOAD-%03u", code);
  return code == 0 ? "" : text;
}

struct Finding {
  loader::ColdResult cold;
  conformance::ElfSymbols symbols;
  tn_plugin_entry verdict{};
  bool exports_one() const { return symbols.exported == std::vector<std::string>{"tn_plugin_query"} && symbols.unique.empty(); }
  bool good() const { return verdict.code == 0 && exports_one(); }
};

Finding look(const std::string& file, double limit_s) {
  Finding f;
  std::ifstream in(file, std::ios::binary);
  if (std::filesystem::is_regular_file(file)) {
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    f.cold = loader::read_cold_elf(std::as_bytes(std::span(bytes)));
    f.symbols = conformance::read_elf_symbols(std::as_bytes(std::span(bytes)));
  }
  f.verdict = verdict_in_child(file, limit_s);
  return f;
}

void print_json(const Context& context, const std::string& file, const Finding& f) {
  const tn_cold& c = f.cold.cold;
  const bool record = f.cold.status == loader::ColdStatus::Ok;
  JsonRow row;
  row.add("path", file).add("good", f.good()).add("code", f.verdict.code).add("verdict", f.verdict.code ? load_code_name(f.verdict.code) : "in-use");
  row.add("explain", code_id(f.verdict.code)).add("stage", stage_name(f.verdict.stage)).add("cause", f.verdict.cause);
  row.add("record", record).add("record_fault", f.cold.cause).add("id", record ? c.id : "").add("version", record ? c.version : "");
  row.add("target", record ? c.target : "").add("host_target", loader::host_target());
  row.add("abi_min", record ? abi_text(c.abi_min) : "").add("abi_max", record ? abi_text(c.abi_max) : "").add("host_abi", abi_text(tn_version()));
  row.add("abi", f.verdict.abi ? abi_text(f.verdict.abi) : "").add("build_id", f.cold.build_id).add("unloadable", record && (c.flags & TN_COLD_UNLOADABLE) != 0);
  row.add("exports", f.symbols.exported).add("unique", f.symbols.unique).add("links", f.symbols.needed);
  context.line(row.text());
}

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& s : list) text += (text.empty() ? "" : " ") + s;
  return text.empty() ? "nothing" : text;
}

void print_human(const Context& context, const std::string& file, const Finding& f) {
  const tn_cold& c = f.cold.cold;
  context.line(context.bold(file));
  if (f.cold.status == loader::ColdStatus::Ok) {
    context.line(std::string("record    ") + c.id + " " + c.version + ", " + c.target + (c.flags & TN_COLD_UNLOADABLE ? ", may be unloaded" : ", stays mapped"));
    context.line("versions  plugin " + abi_text(c.abi_min) + " to " + abi_text(c.abi_max) + ", this host " + abi_text(tn_version()));
  } else {
    context.line("record    " + context.bad(f.cold.cause.empty() ? "none" : f.cold.cause));
  }
  context.line("build id  " + (f.cold.build_id.empty() ? context.warn("none") : f.cold.build_id));
  context.line("exports   " + (f.exports_one() ? context.good(joined(f.symbols.exported)) : context.bad(joined(f.symbols.exported)) + ", tn_plugin_query alone is wanted"));
  if (!f.symbols.unique.empty()) context.line("unique    " + context.bad(joined(f.symbols.unique)) + ": build with -fno-gnu-unique");
  context.line("links     " + joined(f.symbols.needed));
  if (f.verdict.code == 0) return context.line("verdict   " + context.good("in-use") + ", table of version " + abi_text(f.verdict.abi));
  context.line("verdict   " + context.bad(code_id(f.verdict.code) + " " + load_code_name(f.verdict.code)) + ", at step " + stage_name(f.verdict.stage));
  context.line(std::string("  why:    ") + f.verdict.cause);
  context.line("  try:    tenon explain " + code_id(f.verdict.code));
}

int run(Context& context, const Choices& c) {
  if (c.action != "check")
    throw Failure(kUsage, "TN-CLI-035", "tenon abi has one action", c.action, "`check` is known", "tenon abi check FILE");
  if (!std::filesystem::exists(c.file))
    throw Failure(kMissing, "TN-CLI-031", "there is no such plugin file", c.file, "nothing is at this path", "give the path of a libtenon_backend_NAME.so");
  const Finding f = look(c.file, c.limit_s);
  if (context.json) print_json(context, c.file, f);
  else print_human(context, c.file, f);
  return f.good() ? kDone : kFailed;
}

Run setup(Args& args) {
  auto c = std::make_shared<Choices>();
  args.positional("action", &c->action, "check");
  args.positional("file", &c->file, "the plugin's file");
  args.option("--limit", &c->limit_s, "seconds that the plugin has for being tried, loaded and ended");
  return [c](Context& context) { return run(context, *c); };
}

}  // namespace

extern const Command command_abi{"abi", "Check a plugin file against the contract and this host: record, exports, table, versions, verdict.",
                                 "tenon abi check build/libtenon_backend_acme.so\ntenon abi check acme.so --json", kUsesNothing, setup};

}  // namespace tenon::cli
