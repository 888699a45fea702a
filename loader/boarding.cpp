#include "loader/boarding.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "kernel/fp_env.h"
#include "kernel/status.h"
#include "loader/handshake.h"
#include "loader/open.h"

namespace tenon::loader {
namespace {

using kernel::PluginSlot;
using kernel::Runtime;

// What a slot in use owns: the identity it was taken in under, the table at this host's size, the mapped file.
struct Boarded {
  KnownFile known;
  tn_plugin table{};
  std::shared_ptr<void> mapping;  // empty for a linked plugin
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

// What kept a plugin from starting, on one line, with the id under which `tenon explain` has more: "TN-ABI-003: too many
// devices; 1000 are reported". What to try is the verdict's own.
std::string cause_of(const tn_diag& diag, tn_status status) {
  std::string text = diag.msg;
  text = text.substr(0, text.find("\ntry: "));
  for (size_t at; (at = text.find("\nwhy: ")) != std::string::npos;) text.replace(at, 6, "; ");
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.empty()) return tn_status_text(status);
  char number[16];
  std::snprintf(number, sizeof number, "-%03u: ", diag.id & 0xFFFF);
  return diag.id ? std::string("TN-") + kernel::family_name(diag.id >> 16) + number + text : text;
}

std::vector<KnownFile> in_use(const Runtime& runtime) {
  std::vector<KnownFile> known;
  for (const auto& slot : runtime.slots()) {
    if (slot->attached && slot->library) known.push_back(static_cast<const Boarded*>(slot->library.get())->known);
  }
  return known;
}

// Steps from query on, the same for files and linked plugins.
std::optional<Verdict> start(Runtime& runtime, PluginSlot* slot, std::shared_ptr<Boarded> boarded, tn_plugin_query_fn query, uint32_t abi) {
  if (auto refused = query_table(query, abi, &slot->host, &boarded->table)) return refused;
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
  const Code code = status == TN_E_UNAVAILABLE ? Code::OpenUnavailable : Code::OpenError;
  return verdict(code, cause_of(diag, status), diag.native_code);
}

// All steps of one file; what is learnt on the way goes into the entry.
std::optional<Verdict> try_file(Runtime& runtime, PluginSlot* slot, const Candidate& candidate, const HostFacts& host) {
  if (candidate.refused) return candidate.refused;
  auto boarded = std::make_shared<Boarded>();
  ColdResult cold;
  {
    MappedFile file;
    if (auto refused = file.open(candidate.path)) return refused;
    boarded->known.identity = file.identity();
    cold = read_cold(file.bytes());
  }
  put_text(slot->entry.build_id, cold.build_id);
  if (cold.status == ColdStatus::Ok) {
    put_text(slot->entry.id, cold.cold.id);
    put_text(slot->entry.version, cold.cold.version);
    slot->entry.flags = cold.cold.flags;
  }
  const auto known = in_use(runtime);
  if (auto refused = check_identity(boarded->known.identity, known)) return refused;
  if (auto refused = check_cold(cold, host)) return refused;
  if (auto refused = check_duplicate(cold, known)) return refused;
  slot->entry.abi = *common_abi(host.abi_min, host.abi_max, cold.cold.abi_min, cold.cold.abi_max);
  boarded->known = {candidate.path, cold.cold.id, cold.build_id, boarded->known.identity};
  OpenedLibrary opened;
  const bool keep_mapped = (cold.cold.flags & TN_COLD_UNLOADABLE) == 0;
  if (auto refused = open_library(candidate.path, keep_mapped, &opened)) return refused;
  boarded->mapping = opened.handle;
  return start(runtime, slot, boarded, opened.query, slot->entry.abi);
}

}  // namespace

PluginSlot* board_file(Runtime& runtime, const Candidate& candidate, const HostFacts& host) {
  PluginSlot* slot = runtime.add_slot();
  put_text(slot->entry.path, candidate.path);
  const auto refused = try_file(runtime, slot, candidate, host);
  put_verdict(slot, refused ? *refused : verdict(Code::InUse));
  if (refused) slot->library.reset();
  return slot;
}

PluginSlot* board_linked(Runtime& runtime, const std::string& plugin_id, tn_plugin_query_fn query) {
  PluginSlot* slot = runtime.add_slot();
  put_text(slot->entry.id, plugin_id);
  slot->entry.abi = TN_ABI_CURRENT;
  auto boarded = std::make_shared<Boarded>();
  boarded->known.id = plugin_id;
  boarded->known.identity = {UINT64_MAX, UINT64_MAX};  // of no file
  ColdResult as_record;
  put_text(as_record.cold.id, plugin_id);
  auto refused = check_duplicate(as_record, in_use(runtime));
  if (!refused) refused = start(runtime, slot, boarded, query, TN_ABI_CURRENT);
  put_verdict(slot, refused ? *refused : verdict(Code::InUse));
  if (refused) slot->library.reset();
  return slot;
}

tn_status unboard(Runtime& runtime, PluginSlot* slot, uint64_t timeout_ns, tn_diag* diag) {
  kernel::FpEnvGuard keep;
  if (tn_status s = runtime.detach(slot, timeout_ns, diag)) return s;
  const bool linked = static_cast<const Boarded*>(slot->library.get())->mapping == nullptr;
  const bool unmapped = (slot->entry.flags & TN_COLD_UNLOADABLE) != 0;
  slot->table = nullptr;
  slot->library.reset();
  put_verdict(slot, verdict(Code::Unloaded, linked || unmapped ? "by tn_plugin_unload" : "by tn_plugin_unload; the file stays mapped, its record does not say that it can be unmapped"));
  return TN_OK;
}

tn_status answer(const PluginSlot& slot, tn_diag* diag) {
  const auto code = static_cast<Code>(slot.entry.code);
  if (code == Code::InUse) return TN_OK;
  const char* slash = std::strrchr(slot.entry.path, '/');
  const char* name = slash != nullptr ? slash + 1 : slot.entry.id;
  // The cause is cut before what to try is.
  const size_t fixed = std::min<size_t>(std::strlen(name), 40) + std::strlen(code_title(code)) + std::strlen(advice(code)) + std::strlen(": \nwhy: \ntry: ");
  const int room = static_cast<int>(sizeof diag->msg - 2 - std::min(fixed, sizeof diag->msg - 2));
  const tn_status status = kernel::fail(diag, status_of(code), kernel::id(kernel::kLoad, slot.entry.code), "%.40s: %s\nwhy: %.*s\ntry: %s", name,
                                        code_title(code), room, slot.entry.cause, advice(code));
  if (diag != nullptr) diag->native_code = slot.entry.native_code;
  return status;
}

}  // namespace tenon::loader
