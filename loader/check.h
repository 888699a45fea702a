// loader/check.h - judging a file before any of its code runs: cold record against host, and against files already there.
//
// All functions are pure.
#pragma once
#include <tenon/plugin.h>

#include <optional>
#include <string>
#include <vector>

#include "loader/cold/read.h"
#include "loader/cpu_features.h"
#include "loader/file.h"
#include "loader/verdict.h"

namespace tenon::loader {

struct HostFacts {
  std::string target;                    // "x86_64-linux-gnu"
  uint32_t abi_min = 0, abi_max = 0;     // TN_ABI versions this host speaks
  CpuBits cpu{};
};
HostFacts host_facts();

// The highest version in both ranges, or nothing.
std::optional<uint32_t> common_abi(uint32_t host_min, uint32_t host_max, uint32_t plugin_min, uint32_t plugin_max);
std::string abi_text(uint32_t abi);  // "1.2"

// Nothing when the record fits this host; else bad-elf, wrong-target, not-a-plugin, bad-record, abi-range or
// cpu-need.
std::optional<Verdict> check_cold(const ColdResult&, const HostFacts&);

// A file that is in use, or (refused not empty) one that was refused in this same search after its code had run.
struct KnownFile {
  std::string path, id, build_id;
  FileIdentity identity;
  std::string refused = {};
};
// duplicate-of when `known` has the same file (also by another link), a byte copy (build id), or the same plugin id.
std::optional<Verdict> check_identity(const FileIdentity&, const std::vector<KnownFile>& known);
std::optional<Verdict> check_duplicate(const ColdResult&, const std::vector<KnownFile>& known);

}  // namespace tenon::loader
