// loader/boot.cpp - runtime.h: making and ending a runtime, and its plugins. The one place where kernel, ops, the linked
// reference plugin and the plugin files meet.
#include <tenon/ops.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "kernel/guard.h"
#include "kernel/runtime.h"
#include "kernel/status.h"
#include "loader/boarding.h"
#include "loader/options.h"
#include "loader/probe/cache.h"
#include "loader/rates.h"
#include "ops/op.h"
#include "ops/reference/plugin.h"

using namespace tenon::kernel;
using namespace tenon::loader;

namespace {

tn_status define_core_ops(Runtime& runtime, tn_diag* diag) {
  runtime.set_op_roles(TN_OPID_ADD, TN_OPID_COPY);
  for (const tenon::ops::OpDecl* op : tenon::ops::all_ops()) {
    if (tn_status s = runtime.define_op(&op->def, diag)) return s;
  }
  return TN_OK;
}

// The setting is taken out: what plugins report does not depend on it. The variable goes first.
tn_status configure_filter(Runtime& runtime, const Environment& env, std::map<std::string, std::string>* config, tn_diag* diag) {
  const auto setting = config->extract("devices.visible");
  VisibleFilter filter;
  if (env.devices) {
    if (tn_status s = filter.parse("TENON_DEVICES", *env.devices, diag)) return s;
  } else if (!setting.empty()) {
    if (tn_status s = filter.parse("devices.visible", setting.mapped(), diag)) return s;
  }
  runtime.set_filter(filter);
  return TN_OK;
}

// Settings are kept with the runtime as text, so that plugins added later are judged alike.
tn_status configure(Runtime& runtime, const BootOptions& options, const Environment& env, tn_diag* diag) {
  std::map<std::string, std::string> config;
  const char* text = env.secure ? nullptr : std::getenv("TENON_CONFIG");
  if (text != nullptr) {
    if (tn_status s = parse_config(text, &config, diag)) return s;
  }
  if (tn_status s = check_loader_keys(config, diag)) return s;
  const char* isolated = env.secure ? nullptr : std::getenv("TENON_ISOLATE");
  if (isolated != nullptr && *isolated != '\0') config["loader.isolate"] += std::string(config["loader.isolate"].empty() ? "" : ",") + isolated;
  if (options.trust != TN_TRUST_OFF) config["loader.trust"] = options.trust == TN_TRUST_WARN ? "warn" : "enforce";
  std::string allow;
  for (const std::string& entry : options.allow) allow += (allow.empty() ? "" : ",") + entry;
  if (!allow.empty()) config["loader.allow"] = allow;
  if (!options.cache_dir.empty()) config["loader.cache"] = options.cache_dir;
  if (tn_status s = configure_filter(runtime, env, &config, diag)) return s;
  for (const auto& [key, value] : config) runtime.set_config(key, value);
  return TN_OK;
}

tn_status rules_of(const Runtime& runtime, const Environment& env, BoardingRules* out, tn_diag* diag) {
  out->host = host_facts();
  out->owner = {geteuid(), env.library_folder};
  out->secure = env.secure;
  // As installed, or else as built.
  for (const char* place : {TENON_PROBE_FROM_LIBRARY, "../libexec/tenon/tenon-probe"}) {
    if (env.library_folder.empty() || !out->probe_program.empty()) continue;
    const std::string program = env.library_folder + "/" + place;
    if (identity_of(program)) out->probe_program = program;
    const std::string worker = program.substr(0, program.rfind('/')) + "/tenon-worker";
    if (identity_of(worker)) out->worker_program = worker;
  }
  return read_settings([&](const char* key) { return runtime.config(key); }, env, &out->settings, diag);
}

tn_status boot(Runtime& runtime, const BootOptions& options, tn_diag* diag) {
  const Environment env = environment();
  if (tn_status s = configure(runtime, options, env, diag)) return s;
  BoardingRules rules;
  if (tn_status s = rules_of(runtime, env, &rules, diag)) return s;
  if (tn_status s = define_core_ops(runtime, diag)) return s;
  std::lock_guard lock(runtime.plugin_lock());
  if (tn_status s = answer(*board_linked(runtime, TN_REFERENCE_ID, tn_reference_query), diag)) return s;
  runtime.rate_store = make_rate_store(runtime, rules.settings.rates_folder);
  // What the setting amounts to, for plugins that keep files there too.
  runtime.set_config("loader.cache", rules.settings.cache_base.empty() ? "off" : rules.settings.cache_base);
  if (!options.search) return TN_OK;
  if (!rules.settings.forget.empty()) ProbeCache(rules.settings.cache_folder).forget(rules.settings.forget);
  std::vector<KnownFile> refused;
  for (const Candidate& candidate : find_candidates(options.folders ? *options.folders : standard_folders(env))) {
    board_file(runtime, candidate, rules, &refused);
  }
  if (tn_status s = check_isolated(runtime, rules.settings, diag)) return s;
  runtime.rate_store = make_rate_store(runtime, rules.settings.rates_folder);  // now that the plugins are known
  return runtime.check_filter(diag);
}

tn_status missing(tn_diag* diag, const char* what) {
  return fail(diag, TN_E_ARG, id(kAbi, 7), "a required argument is NULL\nwhy: %s\ntry: pass it", what);
}

// The first thing that still lives in the runtime, as an error; TN_OK when nothing does.
tn_status check_idle(Runtime& runtime, uint64_t timeout_ns, tn_diag* diag) {
  if (const Device* device = runtime.still_working(timeout_ns)) {
    return fail(diag, TN_E_BUSY, id(kLoad, 43), "the runtime is in use\nwhy: work on %s is still running after %.3g ms\ntry: wait for it first, or give a longer timeout",
                device->name, static_cast<double>(timeout_ns) / 1e6);
  }
  for (Device* device : runtime.devices()) {
    if (device->handle == nullptr) continue;
    tn_memory_info info{};
    device->memory.stats(&info);
    if (info.in_use != 0) {
      return fail(diag, TN_E_BUSY, id(kLoad, 43), "the runtime is in use\nwhy: %llu bytes of tensors live on %s\ntry: release tensors and plans first",
                  static_cast<unsigned long long>(info.in_use), device->name);
    }
  }
  return TN_OK;
}

}  // namespace

extern "C" {

tn_status tn_runtime_create(const tn_runtime_options* options, tn_runtime** out, tn_diag* diag) {
  if (out == nullptr) return missing(diag, "tn_runtime_create: out");
  return guarded(diag, [&]() -> tn_status {
    BootOptions boot_options;
    if (tn_status s = read_options(options, &boot_options, diag)) return s;
    auto runtime = std::make_unique<tn_runtime>(options);
    if (tn_status s = boot(runtime->core, boot_options, diag)) return s;
    *out = runtime.release();
    return TN_OK;
  });
}

tn_status tn_runtime_destroy(tn_runtime* runtime, uint64_t timeout_ns, tn_diag* diag) {
  if (runtime == nullptr) return TN_OK;
  return guarded(diag, [&]() -> tn_status {
    if (tn_status s = check_idle(runtime->core, timeout_ns, diag)) return s;
    if (tn_status s = runtime->core.shut_down(timeout_ns, diag)) return s;
    delete runtime;
    return TN_OK;
  });
}

tn_status tn_plugins(tn_runtime* runtime, tn_plugin_entry* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  if (runtime == nullptr || out_n == nullptr || (out == nullptr && cap != 0)) return missing(diag, "tn_plugins: runtime, out_n, or out with cap above 0");
  constexpr uint32_t kLeast = offsetof(tn_plugin_entry, stage) + sizeof(uint32_t);
  if (cap != 0 && stride < kLeast) {
    return fail(diag, TN_E_ABI, id(kAbi, 4), "tn_plugins: stride too small\nwhy: stride %u, at least %u wanted\ntry: pass sizeof(tn_plugin_entry)", stride, kLeast);
  }
  Runtime& core = runtime->core;
  std::lock_guard lock(core.plugin_lock());
  const auto slots = core.slots();
  *out_n = static_cast<uint32_t>(slots.size());
  for (uint32_t i = 0; i < cap && i < slots.size(); ++i) {
    auto* to = reinterpret_cast<char*>(out) + size_t{i} * stride;
    const uint32_t bytes = std::min<uint32_t>(stride, sizeof(tn_plugin_entry));
    std::memcpy(to, &slots[i]->entry, bytes);
    std::memcpy(to, &bytes, sizeof bytes);  // `size` says what was filled
  }
  return TN_OK;
}

tn_status tn_plugin_link(tn_runtime* runtime, const char* plugin_id, tn_plugin_query_fn query, uint32_t* out_index, tn_diag* diag) {
  if (runtime == nullptr || plugin_id == nullptr || query == nullptr) return missing(diag, "tn_plugin_link: runtime, id or query");
  return guarded(diag, [&]() -> tn_status {
    std::lock_guard lock(runtime->core.plugin_lock());
    const PluginSlot* slot = board_linked(runtime->core, plugin_id, query);
    if (tn_status s = answer(*slot, diag)) return s;
    if (out_index != nullptr) *out_index = slot->entry.index;
    return TN_OK;
  });
}

tn_status tn_plugin_load(tn_runtime* runtime, const char* path, uint32_t* out_index, tn_diag* diag) {
  if (runtime == nullptr || path == nullptr) return missing(diag, "tn_plugin_load: runtime or path");
  return guarded(diag, [&]() -> tn_status {
    BoardingRules rules;
    if (tn_status s = rules_of(runtime->core, environment(), &rules, diag)) return s;
    std::lock_guard lock(runtime->core.plugin_lock());
    const PluginSlot* slot = board_file(runtime->core, named_candidate(path), rules);
    if (tn_status s = answer(*slot, diag)) return s;
    if (out_index != nullptr) *out_index = slot->entry.index;
    return TN_OK;
  });
}

tn_status tn_plugin_unload(tn_runtime* runtime, uint32_t index, uint64_t timeout_ns, tn_diag* diag) {
  if (runtime == nullptr) return missing(diag, "tn_plugin_unload: runtime");
  return guarded(diag, [&]() -> tn_status {
    std::lock_guard lock(runtime->core.plugin_lock());
    const auto slots = runtime->core.slots();
    if (index >= slots.size() || !(slots[index]->attached || slots[index]->known)) {
      return fail(diag, TN_E_NOT_FOUND, id(kLoad, 41), "no such plugin in use\nwhy: plugin %u, there are %zu entries\ntry: list the plugins with tn_plugins", index, slots.size());
    }
    return unboard(runtime->core, slots[index].get(), timeout_ns, diag);
  });
}

}  // extern "C"
