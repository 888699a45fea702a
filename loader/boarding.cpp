#include "loader/boarding.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "kernel/fp_env.h"
#include "kernel/status.h"
#include "loader/filters.h"
#include "loader/handshake.h"
#include "loader/isolate/proxy.h"
#include "loader/open.h"
#include "loader/probe/cache.h"
#include "loader/probe/gather.h"
#include "loader/probe/run.h"
#include "loader/small_file.h"
#include "loader/start_verdict.h"

namespace tenon::loader {
namespace {

using kernel::PluginSlot;
using kernel::Runtime;

// What a slot in use owns: the identity it was taken in under, the table at this host's size, the mapped file.
struct Boarded {
  KnownFile known;
  tn_plugin table{};
  std::shared_ptr<void> mapping;  // empty for a linked plugin, and for one in a worker process
  std::shared_ptr<isolate::WorkerProcess> worker;
};

template <size_t N>
void put_text(char (&out)[N], const std::string& text) {
  const size_t n = std::min(text.size(), N - 1);
  std::memcpy(out, text.data(), n);
  out[n] = '\0';
}

void put_verdict(PluginSlot* slot, const Verdict& v) {
  slot->entry.code = static_cast<uint32_t>(v.code);
  slot->entry.stage = static_cast<uint32_t>(v.stage);
  slot->entry.native_code = v.native_code;
  put_text(slot->entry.cause, v.cause);
}

// Those that are only known count too.
std::vector<KnownFile> in_use(const Runtime& runtime) {
  std::vector<KnownFile> known;
  for (const auto& slot : runtime.slots()) {
    if ((slot->attached || slot->known) && slot->library) known.push_back(static_cast<const Boarded*>(slot->library.get())->known);
  }
  return known;
}

// The last step, with a table that was checked.
std::optional<Verdict> attach(Runtime& runtime, PluginSlot* slot, std::shared_ptr<Boarded> boarded) {
  slot->table = &boarded->table;
  slot->library = boarded;
  tn_diag diag{};
  diag.size = sizeof diag;
  tn_status status = TN_E_BUG;
  try {
    kernel::FpEnvGuard keep;
    status = runtime.attach(slot, &diag);
  } catch (...) {
    std::strcpy(diag.msg, "the plugin threw an exception, which the contract forbids");
  }
  if (status == TN_OK) return std::nullopt;
  slot->table = nullptr;
  return not_started(diag, status);
}

// Steps from query on, the same for files and linked plugins.
std::optional<Verdict> start(Runtime& runtime, PluginSlot* slot, std::shared_ptr<Boarded> boarded, tn_plugin_query_fn query, uint32_t abi) {
  if (auto refused = query_table(query, abi, &slot->host, &boarded->table)) return refused;
  return attach(runtime, slot, std::move(boarded));
}

// The open entry of an isolated plugin's table: the host knows whose it is.
tn_status open_in_worker(const tn_host* host, tn_instance** out, tn_diag* diag) {
  const PluginSlot* slot = static_cast<const kernel::HostContext*>(host->ctx)->slot;
  return isolate::open_proxy(static_cast<const Boarded*>(slot->library.get())->worker, host, out, diag);
}

// The slot that this plugin had before it was unloaded, so that its number stays and nothing grows; else a new one.
PluginSlot* slot_for(Runtime& runtime, const char* path, const char* linked_id) {
  for (const auto& slot : runtime.slots()) {
    tn_plugin_entry& e = slot->entry;
    const bool same = *path != '\0' ? std::strcmp(e.path, path) == 0 : e.path[0] == '\0' && std::strcmp(e.id, linked_id) == 0;
    if (e.code != static_cast<uint32_t>(Code::Unloaded) || !same) continue;
    tn_plugin_entry fresh{};
    fresh.size = e.size, fresh.index = e.index;
    e = fresh;
    return slot.get();
  }
  return runtime.add_slot();
}

// What a probe's result depends on. One line. `filtered`: under the variables that hide devices.
std::string probe_key(const Runtime& runtime, const Candidate& candidate, const MappedFile& file, const ColdResult& cold, const BoardingRules& rules, bool filtered) {
  const auto program = identity_of(rules.probe_program);
  std::string key = "build " + cold.build_id + " size " + std::to_string(file.facts().size_bytes) + " time " + std::to_string(file.facts().modified_ns);
  key += " inode " + std::to_string(file.identity().device) + ":" + std::to_string(file.identity().inode) + " path " + candidate.path;
  key += " probe " + std::to_string(program ? program->inode : 0) + " abi " + abi_text(TN_ABI_CURRENT) + " user " + std::to_string(rules.owner.user);
  return key + " filters " + short_hash(filter_text(filtered)) + " machine " + short_hash(driver_fingerprint()) + " needs " +
         short_hash(needed_libraries(cold.cold.need, std::min(cold.cold.n_need, 6u))) + " config " + short_hash(runtime.config_text("loader."));
}

// One file's way. What is learnt on the way goes into the slot's entry. It outlives its call where the last step, opening,
// waits until somebody wants it: hence its own copies.
class FileBoarding {
  static constexpr int64_t kAbsentSeconds = 600;

 public:
  FileBoarding(Runtime& runtime, PluginSlot* slot, const Candidate& candidate, const BoardingRules& rules)
      : runtime_(runtime), slot_(slot), candidate_(candidate), rules_(rules), trust_(rules_.settings.trust) {}

  std::optional<Verdict> run(const std::vector<KnownFile>& refused, bool may_wait) {
    if (candidate_.refused) return candidate_.refused;
    if (auto bad = look()) return bad;
    auto known = in_use(runtime_);
    known.insert(known.end(), refused.begin(), refused.end());
    if (auto bad = check_identity(file_.identity(), known)) return bad;
    if (auto bad = check_cold(cold_, rules_.host)) return bad;
    if (auto bad = check_duplicate(cold_, known)) return bad;
    if (auto bad = weigh(check_allowed(cold_.cold.id, file_.bytes(), trust_))) return bad;
    slot_->entry.abi = *common_abi(rules_.host.abi_min, rules_.host.abi_max, cold_.cold.abi_min, cold_.cold.abi_max);
    if (auto bad = probe()) return bad;
    if (filters_set() && !rules_.secure) look_behind_filters();
    if (may_wait && waits()) return std::nullopt;
    return open();
  }

  // Whether what the plugin said is all that is needed for now: see can_wait. One whose devices are all hidden waits for ever.
  bool waits() const {
    if (!report_ || !can_wait(*report_)) return false;
    return (cached_ && !rules_.settings.open_all) || !runtime_.filter_means(slot_, report_->devices);
  }
  const PluginReport& report() const { return *report_; }

  // The step that waited. The record is corrected where the plugin says something else now than when it was tried.
  std::optional<Verdict> open_now() {
    if (auto bad = open()) return bad;
    const PluginReport now = gather_report(*slot_);
    if (const auto change = report_change(*report_, now)) {
      add_note(*change);
      ProbeCache(rules_.settings.cache_folder).keep(key_, {cold_.cold.id, 0, 0, {}, now});
    }
    return std::nullopt;
  }

  const std::string& note() const { return note_; }
  KnownFile known() const { return {candidate_.path, cold_.cold.id, cold_.build_id, file_.identity(), {}}; }

 private:
  // Opens the file, asks who could have changed it, reads its record.
  std::optional<Verdict> look() {
    if (auto bad = file_.open(candidate_.path)) return bad;
    if (auto bad = weigh(check_owner(candidate_.path, file_.facts(), rules_.owner))) return bad;
    if (trust_.mode == TN_TRUST_ENFORCE) {
      if (auto bad = file_.seal()) return bad;
    }
    cold_ = read_cold(file_.bytes());
    put_text(slot_->entry.build_id, cold_.build_id);
    if (cold_.status != ColdStatus::Ok) return std::nullopt;  // check_cold says why
    put_text(slot_->entry.id, cold_.cold.id);
    put_text(slot_->entry.version, cold_.cold.version);
    slot_->entry.flags = cold_.cold.flags;
    return std::nullopt;
  }

  // Under "warn" a fault of trust is noted and the plugin goes on.
  std::optional<Verdict> weigh(std::optional<Verdict> fault) {
    if (!fault || trust_.mode != TN_TRUST_WARN) return fault;
    add_note("used although " + std::string(code_name(fault->code)) + ": " + fault->cause);
    return std::nullopt;
  }

  void add_note(const std::string& text) {
    note_ += (note_.empty() ? "" : "; ") + text;
    const std::string line = candidate_.path + ": " + text;
    if (const kernel::Hooks::Use hooks(runtime_.hooks()); hooks->log != nullptr) hooks->log(hooks->ctx, TN_LOG_WARN, line.c_str(), static_cast<uint32_t>(line.size()));
  }

  // The descriptor that was checked is opened where something was promised about its content; the path otherwise, since a
  // library opened by descriptor does not find what lies beside it, and debuggers do not find the library.
  int descriptor() const { return trust_.wants_list() || trust_.mode == TN_TRUST_WARN ? file_.descriptor() : -1; }

  std::optional<Verdict> probe() {
    if (rules_.settings.probe == ProbeUse::Off || isolated()) return std::nullopt;  // it never runs in this process
    const ProbeCache cache(rules_.settings.cache_folder);
    key_ = probe_key(runtime_, candidate_, file_, cold_, rules_, true);
    if (auto known = cache.find(key_); known && !stale(*known)) {
      cached_ = tried_ = true;
      report_ = known->report;
      if (known->code == 0) return std::nullopt;
      if (known->age_s >= 60) known->cause += "; as it said " + std::to_string(known->age_s / 60) + " min ago";
      return verdict(static_cast<Code>(known->code), known->cause, known->native_code);
    }
    const ProbeRun run = try_in_child(false);
    if (run.end == ProbeEnd::NotRun) {
      if (rules_.settings.probe == ProbeUse::Require) return verdict(Code::ProbeFailed, run.cause, run.native_code);
      add_note("used without a probe: " + run.cause);
      return std::nullopt;
    }
    report_ = run.report;
    tried_ = true;
    return remember(cache, run);
  }

  ProbeRun try_in_child(bool show_all) const {
    if (rules_.probe_program.empty()) return {ProbeEnd::NotRun, "tenon-probe is absent from the installation", {}, 0};
    ProbeJob job{rules_.probe_program, candidate_.path, descriptor(), rules_.settings.probe_timeout_ms, rules_.secure};
    if (show_all) job.variables = without_filters(environ);
    return run_probe(job);
  }

  // What the plugin says where nothing hides devices; nothing when that cannot be learnt.
  std::optional<PluginReport> report_of_all() const {
    if (rules_.settings.probe == ProbeUse::Off) return std::nullopt;
    const ProbeCache cache(rules_.settings.cache_folder);
    const std::string key = probe_key(runtime_, candidate_, file_, cold_, rules_, false);
    if (const auto known = cache.find(key)) return known->report;
    const ProbeRun run = try_in_child(true);
    if (run.end == ProbeEnd::Safe) cache.keep(key, {cold_.cold.id, 0, 0, {}, run.report});
    return run.report;
  }

  // Devices that a variable hides from their own driver are hidden on every other route as well.
  void look_behind_filters() {
    if (!tried_ || (report_ && report_->offers == 0)) return;
    const auto all = report_of_all();
    if (!all || all->devices.empty()) return;
    const Hidden hidden = hidden_devices(*all, report_ ? *report_ : PluginReport{});
    for (const tn_device_info& device : hidden.devices) runtime_.hide({device, slot_->entry.index, "hidden by " + filters_of(device)});
    if (hidden.nameless != 0) {
      add_note(filters_of(all->devices[0]) + " hides " + std::to_string(hidden.nameless) + " of its devices that give neither UUID nor PCI address: other routes to them are not hidden");
    }
    for (const std::string& fault : unknown_entries(*all)) add_note(fault);
  }

  // What is absent may come without a trace in what the key holds, so that this answer is kept for a while only. It spares every
  // start, of whatever program, the start of a driver that has nothing to offer.
  static bool stale(const ProbeRecord& known) { return known.code == static_cast<uint32_t>(Code::OpenUnavailable) && known.age_s >= kAbsentSeconds; }

  std::optional<Verdict> remember(const ProbeCache& cache, const ProbeRun& run) {
    ProbeRecord record{cold_.cold.id, 0, run.native_code, run.cause, run.report};
    if (run.absent) {
      record.code = static_cast<uint32_t>(Code::OpenUnavailable);
      cache.keep(key_, record);
      return verdict(Code::OpenUnavailable, run.cause, run.native_code);
    }
    if (run.end == ProbeEnd::Safe) {
      cache.keep(key_, record);
      return std::nullopt;
    }
    const Code code = run.end == ProbeEnd::TimedOut ? Code::ProbeTimeout : Code::CrashedInProbe;
    record.code = static_cast<uint32_t>(code);
    record.cause = run.cause + "; in quarantine until: tenon plugins --forget " + record.id;
    const bool kept = cache.keep(key_, record);
    if (!run.output.empty()) add_note("it printed: " + run.output);
    return verdict(code, kept ? record.cause : run.cause, run.native_code);
  }

  std::optional<Verdict> open() {
    // Trying takes time: the path must still lead to what was judged.
    if (descriptor() < 0 && identity_of(candidate_.path) != file_.identity()) return verdict(Code::Untrusted, candidate_.path + " was replaced while it was looked at");
    auto boarded = std::make_shared<Boarded>();
    boarded->known = known();
    if (isolated()) return open_isolated(boarded);
    OpenedLibrary opened;
    const bool keep_mapped = (cold_.cold.flags & TN_COLD_UNLOADABLE) == 0;
    if (auto bad = open_library(candidate_.path, keep_mapped, &opened, descriptor())) return bad;
    boarded->mapping = opened.handle;
    return start(runtime_, slot_, boarded, opened.query, slot_->entry.abi);
  }

  bool isolated() const { return rules_.settings.isolates(cold_.cold.id); }

  std::optional<Verdict> open_isolated(const std::shared_ptr<Boarded>& boarded) {
    if (rules_.worker_program.empty()) return verdict(Code::CannotIsolate, "tenon-worker is absent from the installation");
    const isolate::Job job{rules_.worker_program, candidate_.path, cold_.cold.id, descriptor(), rules_.settings.isolate_timeout_ms, runtime_.pool().size(), slot_->entry.abi, rules_.secure};
    isolate::Facts facts;
    if (auto bad = isolate::start_worker(job, &boarded->worker, &facts)) return bad;
    boarded->table = isolate::proxy_table(facts, open_in_worker);
    note_ += (note_.empty() ? "isolated in worker process " : "; isolated in worker process ") + std::to_string(boarded->worker->pid());
    return attach(runtime_, slot_, boarded);
  }

  Runtime& runtime_;
  PluginSlot* slot_;
  const Candidate candidate_;
  const BoardingRules rules_;
  const TrustPolicy& trust_;  // of the rules
  MappedFile file_;
  ColdResult cold_;
  std::string note_, key_;
  std::optional<PluginReport> report_;  // what it said when it was tried
  bool tried_ = false;
  bool cached_ = false;                 // in an earlier run
};

// The entry at the end of the way.
void settle(PluginSlot* slot, const std::optional<Verdict>& bad, const FileBoarding& boarding) {
  Verdict v = bad ? *bad : verdict(Code::InUse);
  if (!bad) v.cause = boarding.note();
  put_verdict(slot, v);
  if (bad) slot->library.reset();
}

std::string wake(PluginSlot* slot, FileBoarding& boarding) {
  std::optional<Verdict> bad;
  try {
    bad = boarding.open_now();
  } catch (const std::exception& e) {
    bad = verdict(Code::OpenError, e.what());
  }
  settle(slot, bad, boarding);
  if (!bad) return {};
  return bad->cause.empty() ? code_title(bad->code) : bad->cause;
}

// The plugin's devices are listed; it is opened when one of them is asked for.
void board_known(Runtime& runtime, PluginSlot* slot, std::shared_ptr<FileBoarding> boarding) {
  auto boarded = std::make_shared<Boarded>();
  boarded->known = boarding->known();
  slot->library = boarded;
  Verdict v = verdict(Code::InUse, "not opened yet: that is done when one of its devices is asked for" + (boarding->note().empty() ? "" : "; " + boarding->note()));
  v.stage = Stage::Probe;
  put_verdict(slot, v);
  slot->wake = [slot, boarding] { return wake(slot, *boarding); };
  runtime.add_known(slot, boarding->report().devices);
}

}  // namespace

PluginSlot* board_file(Runtime& runtime, const Candidate& candidate, const BoardingRules& rules, std::vector<KnownFile>* refused) {
  PluginSlot* slot = slot_for(runtime, candidate.path.c_str(), "");
  put_text(slot->entry.path, candidate.path);
  const auto boarding = std::make_shared<FileBoarding>(runtime, slot, candidate, rules);
  const bool searched = refused != nullptr;  // one that is named is wanted now
  const auto bad = boarding->run(searched ? *refused : std::vector<KnownFile>{}, searched);
  if (!bad && !slot->attached) return board_known(runtime, slot, boarding), slot;
  settle(slot, bad, *boarding);
  if (bad && searched && bad->stage >= Stage::Probe) {
    refused->push_back(boarding->known());
    refused->back().refused = code_name(bad->code);
  }
  return slot;
}

PluginSlot* board_linked(Runtime& runtime, const std::string& plugin_id, tn_plugin_query_fn query) {
  PluginSlot* slot = slot_for(runtime, "", plugin_id.c_str());
  put_text(slot->entry.id, plugin_id);
  slot->entry.abi = TN_ABI_CURRENT;
  auto boarded = std::make_shared<Boarded>();
  boarded->known.id = plugin_id;
  boarded->known.identity = {UINT64_MAX, UINT64_MAX};  // of no file
  ColdResult as_record;
  put_text(as_record.cold.id, plugin_id);
  auto refused = check_duplicate(as_record, in_use(runtime));
  const char* isolated = runtime.config("loader.isolate");
  if (const auto ids = split_ids(isolated != nullptr ? isolated : ""); std::find(ids.begin(), ids.end(), plugin_id) != ids.end()) refused = verdict(Code::CannotIsolate, "it is linked into the program, and no file");
  if (!refused) refused = start(runtime, slot, boarded, query, TN_ABI_CURRENT);
  put_verdict(slot, refused ? *refused : verdict(Code::InUse));
  if (refused) slot->library.reset();
  return slot;
}

tn_status unboard(Runtime& runtime, PluginSlot* slot, uint64_t timeout_ns, tn_diag* diag) {
  kernel::FpEnvGuard keep;
  if (slot->known) {
    runtime.forget_known(slot, "its plugin was unloaded");
    slot->library.reset();
    put_verdict(slot, verdict(Code::Unloaded, "by tn_plugin_unload; it had not been opened"));
    return TN_OK;
  }
  if (tn_status s = runtime.detach(slot, timeout_ns, diag)) return s;
  const auto* boarded = static_cast<const Boarded*>(slot->library.get());
  const bool linked = boarded->mapping == nullptr;  // or in a worker, which ends
  const bool unmapped = (slot->entry.flags & TN_COLD_UNLOADABLE) != 0;
  slot->table = nullptr;
  slot->library.reset();
  std::string cause = "by tn_plugin_unload";
  if (!linked && !unmapped) cause += "; the file stays mapped, its record does not say that it can be unmapped";
  const int64_t blocks = slot->context.live_allocs.exchange(0), bytes = slot->context.live_bytes.exchange(0);
  if (blocks != 0) cause += "; it has not given back " + std::to_string(blocks) + " blocks of host memory, " + std::to_string(bytes) + " bytes";
  put_verdict(slot, verdict(Code::Unloaded, cause));
  return TN_OK;
}

tn_status check_isolated(const Runtime& runtime, const LoaderSettings& settings, tn_diag* diag) {
  for (const std::string& id : settings.isolate) {
    const auto slots = runtime.slots();
    if (std::any_of(slots.begin(), slots.end(), [&](const auto& slot) { return slot->entry.id == id; })) continue;
    return kernel::fail(diag, TN_E_NOT_FOUND, kernel::id(kernel::kLoad, 47), "no plugin of an isolated id was found\nwhy: loader.isolate or TENON_ISOLATE names \"%.60s\", which is none of the %zu that were found\ntry: correct the id (`tenon plugins` lists them), or install the plugin", id.c_str(), slots.size());
  }
  return TN_OK;
}

tn_status answer(const PluginSlot& slot, tn_diag* diag) {
  const auto code = static_cast<Code>(slot.entry.code);
  if (code == Code::InUse) return TN_OK;
  const char* slash = std::strrchr(slot.entry.path, '/');
  const char* name = slash != nullptr ? slash + 1 : slot.entry.id;
  // The cause gets the room that is left, so that the advice is never cut.
  const size_t others = std::min<size_t>(std::strlen(name), 40) + std::strlen(code_title(code)) + std::strlen(advice(code)) + std::strlen(": \nwhy: \ntry: ");
  const int room = static_cast<int>(sizeof tn_diag{}.msg - 2 - std::min(others, sizeof tn_diag{}.msg - 2));
  const tn_status status = kernel::fail(diag, status_of(code), kernel::id(kernel::kLoad, slot.entry.code), "%.40s: %s\nwhy: %.*s\ntry: %s", name,
                                        code_title(code), room, slot.entry.cause, advice(code));
  if (diag != nullptr) diag->native_code = slot.entry.native_code;
  return status;
}

}  // namespace tenon::loader
