#include "loader/options.h"

#include <algorithm>
#include <set>

#include "kernel/status.h"

namespace tenon::loader {
namespace {

using kernel::fail;
using kernel::id;

// Keys are words joined by dots; anything else is a slip of the pen.
bool is_key(const std::string& key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
  });
}

tn_status read_allowed(const tn_runtime_options& o, BootOptions* out, tn_diag* diag) {
  if (o.n_allow != 0 && o.allow == nullptr) {
    return fail(diag, TN_E_ARG, id(kernel::kAbi, 7), "tn_runtime_create: allow is NULL\nwhy: n_allow is %u\ntry: pass the ids, or set n_allow to 0", o.n_allow);
  }
  for (uint32_t i = 0; i < o.n_allow; ++i) {
    const std::string entry = o.allow[i] != nullptr ? o.allow[i] : "";
    if (entry.empty() || entry.find(',') != std::string::npos) {
      return fail(diag, TN_E_ARG, id(kernel::kLoad, 44), "an entry of the allow list is malformed\nwhy: allow[%u] is \"%.40s\", a plugin id or sha256:... is wanted\ntry: one entry for each plugin", i, entry.c_str());
    }
    out->allow.push_back(entry);
  }
  return TN_OK;
}

tn_status read_folders(const tn_runtime_options& o, BootOptions* out, tn_diag* diag) {
  if (o.n_paths == 0) return TN_OK;
  if (o.paths == nullptr) {
    return fail(diag, TN_E_ARG, id(kernel::kAbi, 7), "tn_runtime_create: paths is NULL\nwhy: n_paths is %u\ntry: pass the folders, or set n_paths to 0", o.n_paths);
  }
  out->folders.emplace();
  for (uint32_t i = 0; i < o.n_paths; ++i) {
    if (o.paths[i] != nullptr && *o.paths[i] != '\0') out->folders->push_back({o.paths[i], true, {}});
  }
  return TN_OK;
}

}  // namespace

tn_status check_extensions(const tn_ext* first, const char* owner, tn_diag* diag) {
  std::set<uint32_t> seen;
  for (const tn_ext* ext = first; ext != nullptr; ext = ext->next) {
    if ((ext->id & TN_EXT_CRITICAL) != 0) {
      return fail(diag, TN_E_EXT, id(kernel::kAbi, 5), "%s: unknown critical extension\nwhy: extension 0x%08x changes the call, this build does not know it\ntry: update libtenon, or leave the extension out", owner, ext->id);
    }
    if (!seen.insert(ext->id).second || seen.size() > 16) {
      return fail(diag, TN_E_ARG, id(kernel::kAbi, 6), "%s: malformed extension chain\nwhy: more than 16 links, or extension 0x%08x twice\ntry: set next of the last link to NULL", owner, ext->id);
    }
  }
  return TN_OK;
}

tn_status read_options(const tn_runtime_options* options, BootOptions* out, tn_diag* diag) {
  if (options == nullptr) return TN_OK;
  // A caller of another version may have a shorter or longer struct; what it lacks is zero, and zero is the default.
  tn_runtime_options o{};
  std::copy_n(reinterpret_cast<const char*>(options), std::min<size_t>(options->size, sizeof o), reinterpret_cast<char*>(&o));
  if (tn_status s = check_extensions(o.next, "tn_runtime_create", diag)) return s;
  if (o.trust > TN_TRUST_ENFORCE) {
    return fail(diag, TN_E_UNSUPPORTED, id(kernel::kLoad, 40), "tn_runtime_create: unknown trust policy\nwhy: trust = %u, known are 0..%d\ntry: pass a TN_TRUST_* value", o.trust, TN_TRUST_ENFORCE);
  }
  if (o.cache_dir != nullptr && *o.cache_dir != '\0' && *o.cache_dir != '/') {
    return fail(diag, TN_E_ARG, id(kernel::kLoad, 45), "tn_runtime_create: cache_dir is relative\nwhy: \"%.60s\" would follow the current directory\ntry: pass the full path", o.cache_dir);
  }
  if (o.policy > TN_POLICY_NO_EXPAND) {
    return fail(diag, TN_E_ARG, id(kernel::kAbi, 7), "tn_runtime_create: unknown policy\nwhy: policy = %u, known are 0..%d\ntry: pass a TN_POLICY_* value", o.policy, TN_POLICY_NO_EXPAND);
  }
  out->trust = o.trust;
  if (o.cache_dir != nullptr) out->cache_dir = o.cache_dir;
  out->search = (o.flags & TN_RT_NO_SEARCH) == 0;
  if (tn_status s = read_allowed(o, out, diag)) return s;
  return read_folders(o, out, diag);
}

tn_status parse_config(const std::string& text, std::map<std::string, std::string>* out, tn_diag* diag) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size());
    const std::string entry = text.substr(begin, end - begin);
    begin = end + 1;
    if (entry.empty()) continue;
    const size_t equals = entry.find('=');
    if (equals == std::string::npos || !is_key(entry.substr(0, equals))) {
      return fail(diag, TN_E_ARG, id(kernel::kLoad, 42), "TENON_CONFIG is malformed\nwhy: \"%.60s\" is not of the form key=value\ntry: TENON_CONFIG='sim.devices=2;cpu.isa=avx2'", entry.c_str());
    }
    (*out)[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return TN_OK;
}

}  // namespace tenon::loader
