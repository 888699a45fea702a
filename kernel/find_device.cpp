#include "kernel/find_device.h"

#include <algorithm>
#include <string>
#include <vector>

#include "kernel/absent.h"
#include "kernel/device_name.h"
#include "kernel/status.h"

namespace tenon::kernel {
namespace {

using Entries = std::vector<tn_device_entry>;

// discrete before integrated before CPU; emulated devices are never picked by themselves.
int rank(const tn_device_entry& e) {
  if (e.info.flags & TN_DEVICE_EMULATED) return -1;
  if (e.info.kind == TN_KIND_CPU) return 1;
  return e.info.flags & TN_DEVICE_INTEGRATED ? 2 : 3;
}

// Why this one, for whoever listens.
void say_choice(Runtime& rt, const tn_device_entry& e, size_t of) {
  static const char* const kinds[] = {"the CPU", "integrated", "a device of its own"};
  const Hooks::Use hooks(rt.hooks());
  if (!hooks->log) return;
  char text[160];
  const int n = std::snprintf(text, sizeof text, "auto is %s, the first of %zu by kind and memory that works: %.60s, %s", e.name, of, e.info.name, kinds[rank(e) - 1]);
  hooks->log(hooks->ctx, TN_LOG_INFO, text, static_cast<uint32_t>(n));
}

tn_status find_auto(Runtime& rt, uint32_t* out, tn_diag* diag) {
  Entries all = rt.device_entries();
  std::stable_sort(all.begin(), all.end(), [](const tn_device_entry& a, const tn_device_entry& b) {
    if (rank(a) != rank(b)) return rank(a) > rank(b);
    return a.info.mem_total_bytes > b.info.mem_total_bytes;
  });
  for (const tn_device_entry& e : all)
    if (rank(e) >= 0 && rt.device(e.device)->open(diag) == TN_OK) return say_choice(rt, e, all.size()), *out = e.device, TN_OK;
  return fail(diag, TN_E_UNAVAILABLE, id(kDevice, 3), "no device can be used\nwhy: %zu are known, none works\ntry: `tenon doctor` says what is missing", all.size());
}

// Of several routes to one piece of hardware the one by its vendor's own interface.
int directness(const tn_device_entry& e) { return e.info.kind == TN_KIND_VULKAN ? 1 : e.info.kind == TN_KIND_OPENCL ? 2 : 0; }

// One that cannot be used (hidden, or its plugin was unloaded) keeps its place in the list: a usable one of that name goes first.
const tn_device_entry* find_named(const Entries& all, DeviceName name) {
  if (name.by == DeviceName::By::List && name.index < 0) name.index = 0;
  const tn_device_entry* found = nullptr;
  const auto better = [](const tn_device_entry& a, const tn_device_entry& b) {
    return (a.verdict == 0) != (b.verdict == 0) ? a.verdict == 0 : directness(a) < directness(b);
  };
  for (const tn_device_entry& e : all)
    if (names_device(name, e.name, e.info) && (!found || better(e, *found))) found = &e;
  return found;
}

tn_status find_one(Runtime& rt, const std::string& name, uint32_t* out, tn_diag* diag) {
  if (name == "auto") return find_auto(rt, out, diag);
  const Entries all = rt.device_entries();
  const std::optional<DeviceName> wanted = parse_device_name(name);
  const tn_device_entry* found = wanted ? find_named(all, *wanted) : nullptr;
  if (!found) return absent_device(rt, all, name, diag);
  if (tn_status s = rt.device(found->device)->open(diag)) return s;
  return *out = found->device, TN_OK;
}

void log_substitute(Runtime& rt, uint32_t used, const char* spec, const char* cause) {
  const Hooks::Use hooks(rt.hooks());
  if (!hooks->log) return;
  const std::string text = "using " + std::string(rt.device(used)->name) + " instead of " + spec + " because: " + cause;
  hooks->log(hooks->ctx, TN_LOG_WARN, text.c_str(), static_cast<uint32_t>(text.size()));
}

}  // namespace

tn_status find_device(Runtime& rt, const char* spec, uint32_t policy, uint32_t* out, tn_diag* diag) {
  const std::string asked = spec && *spec ? spec : "auto";
  tn_diag first{};
  first.size = sizeof first;
  tn_status first_status = TN_OK;
  for (size_t begin = 0; begin < asked.size();) {
    const size_t end = std::min(asked.find(',', begin), asked.size());
    tn_diag cause{};
    cause.size = sizeof cause;
    const tn_status s = find_one(rt, asked.substr(begin, end - begin), out, &cause);
    if (s == TN_OK) return TN_OK;
    if (!first_status) first_status = s, first = cause;
    if (policy != TN_POLICY_PREFER) break;
    begin = end + 1;
  }
  // A single name under "prefer" may run elsewhere; the runtime says so.
  if (policy == TN_POLICY_PREFER && asked != "auto" && rt.policy() == TN_POLICY_PREFER && find_auto(rt, out, nullptr) == TN_OK) {
    log_substitute(rt, *out, spec, first.msg);
    return TN_OK;
  }
  if (diag) *diag = first;
  return first_status;
}

}  // namespace tenon::kernel
