#include "backends/gpu_common/config.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "backends/gpu_common/errors.h"

namespace tenon::gpu {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 60;
constexpr uint64_t kCacheBytes = uint64_t{256} << 20;

struct Reader {
  const tn_host* host;
  const char* name;
  tn_diag* diag;

  tn_status number(const char* key, uint64_t least, uint64_t most, std::optional<uint64_t>* out) const {
    const char* text = setting(host, name, key);
    if (text == nullptr) return TN_OK;
    char* end = nullptr;
    errno = 0;
    const unsigned long long value = std::strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != 0 || errno != 0 || value < least || value > most)
      return report(diag, TN_E_ARG, kErrConfig, "open: bad value of %s.%s\nwhy: \"%.40s\" is not a whole number in %llu..%llu\ntry: correct TENON_CONFIG, or leave it out", name, key, text,
                    ull(least), ull(most));
    *out = value;
    return TN_OK;
  }

  tn_status folder(std::string* out) const {
    if (const char* text = setting(host, name, "cache_dir"); text != nullptr) {
      if (std::strcmp(text, "off") == 0) return TN_OK;
      if (text[0] != '/')
        return report(diag, TN_E_ARG, kErrConfig, "open: bad value of %s.cache_dir\nwhy: \"%.60s\" is neither a full path nor off\ntry: give a path that starts with /", name, text);
      *out = text;
      return TN_OK;
    }
    const char* base = host->config != nullptr ? host->config(host->ctx, "loader.cache") : nullptr;
    if (base != nullptr && base[0] == '/') *out = std::string(base) + "/kernels";
    return TN_OK;
  }
};

template <class T>
void lower(T* limit, const std::optional<uint64_t>& to) {
  if (to && *to < *limit) *limit = static_cast<T>(*to);
}

}  // namespace

const char* setting(const tn_host* host, const char* name, const char* key) {
  return host->config != nullptr ? host->config(host->ctx, (std::string(name) + "." + key).c_str()) : nullptr;
}

tn_status read_settings(const tn_host* host, const char* name, Settings* out, tn_diag* diag) {
  const Reader read{host, name, diag};
  Limits& l = out->limits;
  std::optional<uint64_t> index32, cache_bytes;
  tn_status s = read.number("limit.binding_bytes", 256, kMostBytes, &l.binding_bytes);
  if (s == TN_OK) s = read.number("limit.param_bytes", 0, kMostBytes, &l.param_bytes);
  if (s == TN_OK) s = read.number("limit.local_bytes", 0, kMostBytes, &l.local_bytes);
  if (s == TN_OK) s = read.number("limit.threads", 1, UINT32_MAX, &l.threads);
  if (s == TN_OK) s = read.number("limit.groups", 1, UINT32_MAX, &l.groups);
  if (s == TN_OK) s = read.number("limit.bindings", 1, UINT32_MAX, &l.bindings);
  if (s == TN_OK) s = read.number("limit.index32", 0, 1, &index32);
  if (s == TN_OK) s = read.number("cache_bytes", 0, kMostBytes, &cache_bytes);
  if (s == TN_OK) s = read.folder(&out->cache_folder);
  l.index32 = index32.value_or(0) != 0;
  out->cache_bytes = cache_bytes.value_or(kCacheBytes);
  return s;
}

Caps lowered(Caps caps, const Limits& limits) {
  lower(&caps.binding_bytes, limits.binding_bytes);
  lower(&caps.param_bytes, limits.param_bytes);
  lower(&caps.local_bytes, limits.local_bytes);
  lower(&caps.max_threads, limits.threads);
  lower(&caps.max_bindings, limits.bindings);
  for (uint32_t& axis : caps.max_group) lower(&axis, limits.threads);
  for (uint64_t& axis : caps.max_groups) lower(&axis, limits.groups);
  if (limits.index32) caps.index64 = false;
  return caps;
}

}  // namespace tenon::gpu
