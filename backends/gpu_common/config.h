// backends/gpu_common/config.h - settings of a GPU plugin, read once when it opens.
#pragma once
#include <tenon/plugin.h>

#include <optional>
#include <string>

#include "ops/gpu/caps.h"

namespace tenon::gpu {

// A limit that is set is lowered to this number, never raised.
struct Limits {
  std::optional<uint64_t> binding_bytes, param_bytes, local_bytes, threads, groups, bindings;
  bool index32 = false;
};
struct Settings {
  Limits limits;
  std::string cache_folder;  // empty: compiled kernels are kept in memory only
  uint64_t cache_bytes = 0;
};

// Text of "NAME.key", NULL when not set. Lives until close.
const char* setting(const tn_host* host, const char* name, const char* key);
// errors: TN_E_ARG, TN-DEVICE-060 with the key, its value and what it may be.
tn_status read_settings(const tn_host* host, const char* name, Settings* out, tn_diag*);
Caps lowered(Caps, const Limits&);

}  // namespace tenon::gpu
