#include "loader/settings.h"

#include <tenon/runtime.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "kernel/status.h"
#include "loader/sha256.h"
#include "loader/small_file.h"

namespace tenon::loader {
namespace {

constexpr const char* kKeys[] = {"loader.trust", "loader.allow", "loader.probe", "loader.probe_timeout_ms", "loader.cache", "loader.forget", "loader.open", "loader.isolate", "loader.isolate_timeout_ms"};
constexpr uint32_t kLongestMs = 600000;

tn_status refuse(tn_diag* diag, const char* key, const std::string& value, const char* wanted) {
  return kernel::fail(diag, TN_E_ARG, kernel::id(kernel::kLoad, 45), "%s has no such value\nwhy: it is \"%.60s\", wanted is %s\ntry: correct TENON_CONFIG", key, value.c_str(), wanted);
}

// The place of the key's text among `words`; *out stays when the key is not set.
template <class T>
tn_status read_word(const ConfigLookup& get, const char* key, std::initializer_list<const char*> words, const char* wanted, T* out, tn_diag* diag) {
  const char* text = get(key);
  if (text == nullptr) return TN_OK;
  const auto found = std::find_if(words.begin(), words.end(), [&](const char* w) { return std::strcmp(w, text) == 0; });
  if (found == words.end()) return refuse(diag, key, text, wanted);
  *out = static_cast<T>(found - words.begin());
  return TN_OK;
}

tn_status read_allow(const ConfigLookup& get, TrustPolicy* out, tn_diag* diag) {
  const char* text = get("loader.allow");
  const std::string list = text == nullptr ? "" : text;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    std::string entry = list.substr(begin, end - begin);
    begin = end + 1;
    if (entry.starts_with("sha256:") && !is_sha256_entry(entry)) {
      return kernel::fail(diag, TN_E_ARG, kernel::id(kernel::kLoad, 44), "an entry of the allow list is malformed\nwhy: \"%.40s\" has %zu characters, sha256: and 64 hexadecimal digits are wanted\ntry: give what `sha256sum FILE` prints", entry.c_str(), entry.size());
    }
    if (!entry.empty()) out->allow.push_back(std::move(entry));
  }
  return TN_OK;
}

tn_status read_timeout(const ConfigLookup& get, const char* key, uint32_t* out, tn_diag* diag) {
  const char* text = get(key);
  if (text == nullptr) return TN_OK;
  const char* end = text + std::strlen(text);
  uint32_t ms = 0;
  const auto read = std::from_chars(text, end, ms);
  if (read.ec != std::errc() || read.ptr != end || ms == 0 || ms > kLongestMs) return refuse(diag, key, text, "a number from 1 to 600000");
  *out = ms;
  return TN_OK;
}

tn_status read_cache(const ConfigLookup& get, const Environment& env, LoaderSettings* out, tn_diag* diag) {
  const char* text = get("loader.cache");
  if (text != nullptr && std::strcmp(text, "off") != 0 && text[0] != '/') return refuse(diag, "loader.cache", text, "a full path or off");
  const std::string base = cache_base(text, env);
  if (base.empty()) return TN_OK;
  out->cache_base = base;
  out->cache_folder = base + "/probe";
  out->rates_folder = base + "/rates";
  return TN_OK;
}

}  // namespace

std::vector<std::string> split_ids(const std::string& list) {
  std::vector<std::string> ids;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) ids.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return ids;
}

tn_status read_settings(const ConfigLookup& get, const Environment& env, LoaderSettings* out, tn_diag* diag) {
  if (tn_status s = read_word(get, "loader.trust", {"off", "warn", "enforce"}, "off, warn or enforce", &out->trust.mode, diag)) return s;
  if (tn_status s = read_word(get, "loader.probe", {"on", "off", "require"}, "on, off or require", &out->probe, diag)) return s;
  if (tn_status s = read_word(get, "loader.open", {"asked", "all"}, "asked or all", &out->open_all, diag)) return s;
  if (tn_status s = read_allow(get, &out->trust, diag)) return s;
  if (tn_status s = read_timeout(get, "loader.probe_timeout_ms", &out->probe_timeout_ms, diag)) return s;
  if (tn_status s = read_timeout(get, "loader.isolate_timeout_ms", &out->isolate_timeout_ms, diag)) return s;
  if (const char* ids = get("loader.isolate")) out->isolate = split_ids(ids);
  if (const char* id = get("loader.forget")) out->forget = id;
  return read_cache(get, env, out, diag);
}

tn_status check_loader_keys(const std::map<std::string, std::string>& config, tn_diag* diag) {
  for (const auto& [key, value] : config) {
    if (!key.starts_with("loader.")) continue;
    if (std::any_of(std::begin(kKeys), std::end(kKeys), [&, &name = key](const char* k) { return name == k; })) continue;
    return kernel::fail(diag, TN_E_ARG, kernel::id(kernel::kLoad, 45), "unknown setting %.40s\nwhy: known are loader.trust, allow, probe, probe_timeout_ms, cache, forget, open, isolate and isolate_timeout_ms\ntry: correct TENON_CONFIG", key.c_str());
  }
  return TN_OK;
}

}  // namespace tenon::loader
