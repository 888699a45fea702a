#include "kernel/absent.h"

#include <cstring>

#include "kernel/runtime.h"
#include "kernel/status.h"

namespace tenon::kernel {
namespace {

// Devices bear the last part of their plugin's id, cut to the room that names have; a file whose record could not be read has
// only its own name.
bool would_offer(const tn_plugin_entry& e, const std::string& family) {
  const char* dot = std::strrchr(e.id, '.');
  if (std::string(dot ? dot + 1 : e.id).substr(0, 11) == family.substr(0, 11)) return true;
  const char* slash = std::strrchr(e.path, '/');
  return e.id[0] == '\0' && std::strstr(slash ? slash : e.path, ("_" + family + ".").c_str()) != nullptr;
}

}  // namespace

tn_status absent_device(Runtime& rt, const std::vector<tn_device_entry>& devices, const std::string& name, tn_diag* diag) {
  const std::string family = name.substr(0, name.find(':'));
  std::string have;
  for (const tn_device_entry& d : devices) have += (have.empty() ? "" : ", ") + std::string(d.name);
  std::lock_guard lock(rt.plugin_lock());
  for (const auto& slot : rt.slots()) {
    const tn_plugin_entry& e = slot->entry;
    if (!would_offer(e, family) || e.code == verdicts::kDuplicateOf || e.code == verdicts::kUnloaded) continue;
    if (e.code != 0) {
      const tn_status status = e.code == verdicts::kMissingDependency || e.code == verdicts::kOpenUnavailable ? TN_E_UNAVAILABLE : TN_E_FAILED;
      return fail(diag, status, id(kDevice, 1), "device %.20s cannot be used\nwhy: its plugin is refused, TN-LOAD-%03u: %.95s\ntry: tenon explain TN-LOAD-%03u", name.c_str(), e.code, e.cause, e.code);
    }
    bool any = false;
    for (const tn_device_entry& d : devices) any |= d.plugin == e.index;
    if (!any && (slot->table && slot->table->devices)) return fail(diag, TN_E_UNAVAILABLE, id(kDevice, 1), "device %.20s cannot be used\nwhy: %.60s is in use, but sees no device\ntry: `tenon doctor` says what is missing", name.c_str(), e.id);
  }
  return fail(diag, TN_E_NOT_FOUND, id(kDevice, 4), "no device is called %.40s\nwhy: this machine has %.90s\ntry: use one of them, or load the plugin that offers it", name.c_str(), have.empty() ? "none" : have.c_str());
}

}  // namespace tenon::kernel
