#include "loader/check.h"

#include <algorithm>

namespace tenon::loader {
namespace {

std::string range_text(uint32_t min, uint32_t max) { return "[" + abi_text(min) + ", " + abi_text(max) + "]"; }

Code code_of(ColdStatus status) {
  switch (status) {
    case ColdStatus::WrongTarget: return Code::WrongTarget;
    case ColdStatus::NoRecord: return Code::NotAPlugin;
    case ColdStatus::BadRecord: return Code::BadRecord;
    default: return Code::BadElf;
  }
}

}  // namespace

HostFacts host_facts() {
  // 0.x promises nothing across minors, so the range is one version; from 1.0 on abi_min stays at the major's first.
  return {host_target(), TN_ABI_CURRENT, TN_ABI_CURRENT, host_cpu_bits()};
}

std::optional<uint32_t> common_abi(uint32_t host_min, uint32_t host_max, uint32_t plugin_min, uint32_t plugin_max) {
  const uint32_t highest = std::min(host_max, plugin_max);
  if (highest < std::max(host_min, plugin_min)) return std::nullopt;
  return highest;
}

std::string abi_text(uint32_t abi) { return std::to_string(abi >> 16) + "." + std::to_string(abi & 0xFFFF); }

std::optional<Verdict> check_cold(const ColdResult& read, const HostFacts& host) {
  if (read.status != ColdStatus::Ok) return verdict(code_of(read.status), read.cause);
  const tn_cold& cold = read.cold;
  // The file's own kind decides, whatever its record says.
  if (read.kind != kHostFileKind) {
    return verdict(Code::WrongTarget, std::string("a ") + file_kind_name(read.kind) + " library for " + cold.target + ", this host takes " +
                                          file_kind_name(kHostFileKind) + " for " + host.target);
  }
  if (host.target != cold.target) {
    return verdict(Code::WrongTarget, std::string("the plugin says ") + cold.target + ", this host is " + host.target);
  }
  if (!common_abi(host.abi_min, host.abi_max, cold.abi_min, cold.abi_max)) {
    return verdict(Code::AbiRange, "plugin " + range_text(cold.abi_min, cold.abi_max) + ", host " + range_text(host.abi_min, host.abi_max));
  }
  const CpuBits need{cold.cpu_need[0], cold.cpu_need[1], cold.cpu_need[2], cold.cpu_need[3]};
  const CpuBits missing = missing_bits(need, host.cpu);
  if (missing != CpuBits{}) {
    return verdict(Code::CpuNeed, "needs " + cpu_bits_text(missing) + "; this processor and system offer " + cpu_bits_text(host.cpu));
  }
  return std::nullopt;
}

std::optional<Verdict> check_identity(const FileIdentity& identity, const std::vector<KnownFile>& known) {
  for (const KnownFile& other : known) {
    if (!(other.identity == identity)) continue;
    return verdict(Code::DuplicateOf, "the same file as " + other.path + (other.refused.empty() ? "" : ", which was refused: " + other.refused));
  }
  return std::nullopt;
}

std::optional<Verdict> check_duplicate(const ColdResult& read, const std::vector<KnownFile>& known) {
  for (const KnownFile& other : known) {
    if (!other.refused.empty()) continue;  // a copy elsewhere may find what the first one missed
    if (!read.build_id.empty() && other.build_id == read.build_id) {
      return verdict(Code::DuplicateOf, "a copy of " + other.path + ", build id " + read.build_id);
    }
    if (other.id == read.cold.id) {
      return verdict(Code::DuplicateOf, "the id " + other.id + " is taken by " + (other.path.empty() ? "a linked plugin" : other.path));
    }
  }
  return std::nullopt;
}

}  // namespace tenon::loader
