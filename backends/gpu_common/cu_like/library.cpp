#include "backends/gpu_common/cu_like/library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "backends/gpu_common/cu_like/errors.h"

namespace tenon::gpu::cu_like {

const char* setting(const tn_host* host, const char* key) {
  const char* text = host != nullptr && host->config != nullptr ? host->config(host->ctx, key) : nullptr;
  return text != nullptr && *text != 0 ? text : nullptr;
}

bool Library::open(const std::vector<std::string>& names, const char* instead) {
  const std::vector<std::string> only{instead != nullptr ? instead : ""};
  for (const std::string& name : instead != nullptr ? only : names) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) {
      const char* why = dlerror();
      if (tried_.empty()) tried_ = why != nullptr ? why : name;
      continue;
    }
    path_ = name;
    link_map* map = nullptr;
    if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] != 0) path_ = map->l_name;
    return true;
  }
  return false;
}

void* Library::symbol(const char* name) const { return dlsym(handle_, name); }

tn_status bind(const Library& library, const Symbol* symbols, size_t n, Api* out, const char* plugin, tn_diag* diag) {
  for (size_t i = 0; i < n; ++i) {
    void* found = library.symbol(symbols[i].name);
    if (found == nullptr && !symbols[i].optional)
      return report(diag, TN_E_UNAVAILABLE, kErrNoLibrary, "%s: the driver is too old\nwhy: %s has no %s\ntry: install a newer driver", plugin, library.path().c_str(), symbols[i].name);
    // A later line for the same member is another name of it, tried when the ones before were absent.
    void** member = reinterpret_cast<void**>(reinterpret_cast<char*>(out) + symbols[i].offset);
    if (found != nullptr && *member == nullptr) std::memcpy(member, &found, sizeof found);
  }
  if (const void* label = library.symbol("tenon_stand_in")) out->stand_in = static_cast<const char*>(label);
  return TN_OK;
}

}  // namespace tenon::gpu::cu_like
