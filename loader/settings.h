// loader/settings.h - the loader's own settings: keys "loader.*" of TENON_CONFIG, and what tn_runtime_options sets.
//
//   loader.trust             off (default), warn, enforce: see loader/trust.h. A program's own choice is not lowered.
//   loader.allow             plugin ids and sha256:... entries, separated by commas; a program's own list replaces it
//   loader.probe             on (default): a plugin is tried in a child process before it is opened; where no child can be
//                            started it is used all the same, and its verdict says so. require: then it is refused. off
//   loader.probe_timeout_ms  of each stage; 10000 by default
//   loader.cache             full path of the folder for results, or off; default $XDG_CACHE_HOME/tenon, ~/.cache/tenon. Plugins are
//                            told the folder that it amounts to, under this name
//   loader.open              asked (default): a plugin whose devices are known from an earlier run is opened when one of them is
//                            asked for; all: at the start
//   loader.isolate           ids of plugins, separated by commas, that run in a worker process (loader/isolate); the variable
//                            TENON_ISOLATE adds to them
//   loader.isolate_timeout_ms  how long a worker may leave a call without an answer; 10000 by default
//   loader.forget            id of a plugin whose results are dropped first, so that it is tried again
#pragma once
#include <tenon/types.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "loader/search.h"
#include "loader/trust.h"

namespace tenon::loader {

enum class ProbeUse { On, Off, Require };

struct LoaderSettings {
  TrustPolicy trust;
  ProbeUse probe = ProbeUse::On;
  uint32_t probe_timeout_ms = 10000;
  std::string cache_base;    // what plugins may keep lies there too; empty: nothing is kept
  std::string cache_folder;  // of probe results; empty: none
  std::string rates_folder;  // of measured rates; empty: none
  std::string forget;
  bool open_all = false;
  std::vector<std::string> isolate;  // plugin ids
  uint32_t isolate_timeout_ms = 10000;
  bool isolates(const std::string& plugin_id) const { return std::find(isolate.begin(), isolate.end(), plugin_id) != isolate.end(); }
};
std::vector<std::string> split_ids(const std::string& list);  // at commas; empty ones are left out

// `get` gives a key's text or NULL. Errors: TN_E_ARG, TN-LOAD-045 with the key, its value and what it may be.
using ConfigLookup = std::function<const char*(const char* key)>;
tn_status read_settings(const ConfigLookup& get, const Environment& env, LoaderSettings* out, tn_diag* diag);

// Refuses keys "loader.*" that mean nothing: a slip must not turn into a rule that is not kept.
tn_status check_loader_keys(const std::map<std::string, std::string>& config, tn_diag* diag);

}  // namespace tenon::loader
