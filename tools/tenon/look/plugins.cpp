// `tenon plugins`: every file that was looked at, with its verdict.
#include <cstdlib>
#include <memory>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/json.h"
#include "tools/tenon/common/names.h"

namespace tenon::cli {
namespace {

std::string abi_text(uint32_t abi) { return std::to_string(abi >> 16) + "." + std::to_string(abi & 0xFFFF); }

std::string code_id(uint32_t code) {
  char text[32];
  std::snprintf(text, sizeof text, "TN-LOAD-%03u", code);
  return text;
}

// Sound, but not opened yet: the steps behind the trial are taken when one of its devices is asked for.
bool waits(const tn_plugin_entry& p) { return p.code == 0 && stage_name(p.stage) != std::string("start"); }

void print_json(const Context& context, const tn_plugin_entry& p) {
  JsonRow row;
  row.add("path", p.path).add("code", p.code).add("stage", stage_name(p.stage)).add("cause", p.cause);
  row.add("verdict", load_code_name(p.code)).add("explain", p.code ? code_id(p.code) : "").add("in_use", p.code == 0).add("opened", p.code == 0 && !waits(p));
  row.add("id", p.id).add("version", p.version).add("abi", abi_text(p.abi)).add("build_id", p.build_id);
  context.line(row.text());
}

int run(Context& context) {
  const std::vector<tn_plugin_entry> plugins = plugin_entries(context.handle());
  if (context.json) {
    for (const tn_plugin_entry& p : plugins) print_json(context, p);
    return kDone;
  }
  std::vector<std::vector<std::string>> table{{"VERDICT", "PLUGIN", "VERSION", "ABI", "PATH"}};
  for (const tn_plugin_entry& p : plugins)
    table.push_back({p.code ? context.bad(load_code_name(p.code)) : context.good(waits(p) ? "ready" : "in-use"), p.id[0] ? p.id : "-", p.version[0] ? p.version : "-",
                     p.abi ? abi_text(p.abi) : "-", p.path[0] ? p.path : "(linked)"});
  print_table(context, table);
  for (const tn_plugin_entry& p : plugins) {
    if (!p.code && p.cause[0] && !(waits(p) && std::string(p.cause).find("; ") == std::string::npos)) {
      context.line();
      context.line(context.warn("note") + ": " + p.path);
      context.line(std::string("  why:   ") + p.cause);
    }
    if (!p.code) continue;
    context.line();
    context.line(context.bad(code_id(p.code)) + " " + load_code_name(p.code) + ": " + p.path);
    context.line(std::string("  why:   ") + p.cause);
    context.line("  try:   tenon explain " + code_id(p.code));
  }
  return kDone;
}

// The loader drops what it remembers of the plugin before it looks at files: a setting says so, for no function does.
void forget(const std::string& id) {
  const char* before = std::getenv("TENON_CONFIG");
  const std::string config = (before != nullptr && *before != '\0' ? std::string(before) + ";" : "") + "loader.forget=" + id;
  setenv("TENON_CONFIG", config.c_str(), 1);
}

Run setup(Args& args) {
  auto id = std::make_shared<std::string>();
  args.option("--forget", id.get(), "id of a plugin in quarantine: what its last trial gave is forgotten, and it is tried again");
  return [id](Context& context) {
    if (!id->empty()) forget(*id);
    return run(context);
  };
}

}  // namespace

extern const Command command_plugins{"plugins", "List every plugin file that was looked at, with its verdict.",
                                     "tenon plugins\ntenon plugins --json\nTENON_PLUGIN_PATH=/opt/vendor tenon plugins\ntenon plugins --forget org.example.x", kUsesNothing, setup};

}  // namespace tenon::cli
