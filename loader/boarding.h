// loader/boarding.h - the whole way of one plugin into a runtime: every step, and the entry that keeps the verdict.
//
// Steps: find, trust, dedupe, cold check, allow list, probe, open, query, validate, start. Everything before the probe runs no
// instruction of the plugin. A plugin that a search finds, that was tried in an earlier run and that offers nothing but devices
// of its own kinds and their kernels stays behind the probe's step: code 0, stage probe. It is opened by the first call that
// asks for such a device, and its verdict then is that of the steps that were left.
// Threads: the caller holds the runtime's plugin lock.
#pragma once
#include <string>

#include "kernel/runtime.h"
#include "loader/check.h"
#include "loader/search.h"
#include "loader/settings.h"

namespace tenon::loader {

// What files are judged by.
struct BoardingRules {
  HostFacts host;
  OwnerRule owner;
  LoaderSettings settings;
  std::string probe_program;  // empty: there is none
  std::string worker_program; // likewise
  bool secure = false;        // raised rights
};

// Looks at one candidate, takes it into use if all steps pass, and leaves its entry. Never fails: a bad plugin is a verdict.
// refused: files of this search whose code has run and that were refused; a second way to one of them is a duplicate. It is
// added to. NULL for a file that somebody names: that one is tried again.
kernel::PluginSlot* board_file(kernel::Runtime& runtime, const Candidate& candidate, const BoardingRules& rules, std::vector<KnownFile>* refused = nullptr);

// A plugin linked into the process: no file, hence no record; the steps from query on.
kernel::PluginSlot* board_linked(kernel::Runtime& runtime, const std::string& plugin_id, tn_plugin_query_fn query);

// Takes a plugin out of use. TN_E_BUSY while something of it lives; then nothing has happened. The library is unmapped if
// its record says that this is safe.
tn_status unboard(kernel::Runtime& runtime, kernel::PluginSlot* slot, uint64_t timeout_ns, tn_diag* diag);

// Whether every plugin that is to run in a worker process is there: a slip must not leave one in this process.
tn_status check_isolated(const kernel::Runtime& runtime, const LoaderSettings& settings, tn_diag* diag);

// The verdict of a slot as the answer of a call that asked for this plugin.
tn_status answer(const kernel::PluginSlot& slot, tn_diag* diag);

}  // namespace tenon::loader
