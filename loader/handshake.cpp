#include "loader/handshake.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "kernel/fp_env.h"
#include "loader/check.h"

namespace tenon::loader {
namespace {

// The part every 1.0 plugin has: up to its last required entry.
constexpr size_t kLeastSize = offsetof(tn_plugin, close) + sizeof(tn_plugin::close);

struct Entry {
  const char* name;
  bool present;
};

// Names of the absent entries; *out_any tells whether one is there.
std::string missing_names(std::initializer_list<Entry> entries, bool* out_any) {
  std::string missing;
  *out_any = false;
  for (const Entry& entry : entries) {
    if (entry.present) {
      *out_any = true;
    } else {
      missing += (missing.empty() ? "" : " ") + std::string(entry.name);
    }
  }
  return missing;
}

// Entries that only make sense together: all of them or none.
std::optional<Verdict> check_group(const char* group, std::initializer_list<Entry> entries) {
  bool any = false;
  const std::string missing = missing_names(entries, &any);
  if (!any || missing.empty()) return std::nullopt;
  return verdict(Code::BadTable, std::string("some ") + group + " entries are there, but these are NULL: " + missing);
}

std::optional<Verdict> check_entries(const tn_plugin& t) {
#define E(name) Entry{#name, t.name != nullptr}
  bool any = false;
  const std::string required = missing_names({E(open), E(quiesce), E(close)}, &any);
  if (!required.empty()) return verdict(Code::BadTable, "required entries are NULL: " + required);
  if (auto bad = check_group("device", {E(devices), E(device_open), E(device_close), E(spaces), E(alloc), E(free), E(copy),
                                        E(queue_open), E(queue_close)})) {
    return bad;
  }
  // Devices whose work is done when a call returns need no timelines.
  auto bad = check_group("timeline", {E(timeline_open), E(timeline_close), E(signal), E(wait), E(query)});
  if (!bad && t.timeline_open != nullptr && t.devices == nullptr) {
    bad = verdict(Code::BadTable, "timeline entries are there, but no device entries");
  }
  return bad;
#undef E
}

}  // namespace

std::optional<Verdict> validate_table(const tn_plugin* given, uint32_t abi, tn_plugin* out) {
  // `size` comes first and is read alone, since nothing more is sure to be there.
  uint32_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < kLeastSize) {
    return verdict(Code::BadTable, "table size " + std::to_string(size) + ", at least " + std::to_string(kLeastSize) + " wanted");
  }
  *out = tn_plugin{};
  // An entry that the size cuts in two is not there: half a pointer must not be called.
  std::memcpy(static_cast<void*>(out), given, std::min<size_t>(size / sizeof(void*) * sizeof(void*), sizeof *out));
  out->size = sizeof *out;
  if (out->abi != abi) {
    return verdict(Code::BadTable, "the table says ABI " + abi_text(out->abi) + ", asked for was " + abi_text(abi));
  }
  return check_entries(*out);
}

std::optional<Verdict> query_table(tn_plugin_query_fn query, uint32_t abi, const tn_host* host, tn_plugin* out) {
  const tn_plugin* given = nullptr;
  try {
    kernel::FpEnvGuard keep;
    given = query(abi, host);
  } catch (...) {
    return verdict(Code::QueryRefused, "tn_plugin_query threw an exception, which the contract forbids");
  }
  if (given == nullptr) return verdict(Code::QueryRefused, "tn_plugin_query returned NULL for ABI " + abi_text(abi));
  return validate_table(given, abi, out);
}

}  // namespace tenon::loader
