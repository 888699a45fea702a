// loader/cold/elf.h - the cold record of a plugin file, read from its bytes; no instruction of the file runs.
//
//   ColdResult r = read_cold_elf(bytes);
//   if (r.status == ColdStatus::Ok) use(r.cold.id, r.cold.abi_min, r.build_id);
//
// The bytes are foreign input: every offset is checked, nothing is trusted, any input gives an answer. A file that is
// shorter than its own loadable segments is refused here, because mapping it would end the process with SIGBUS.
#pragma once
#include <tenon/plugin.h>

#include <cstddef>
#include <span>
#include <string>

namespace tenon::loader {

enum class ColdStatus {
  Ok,
  NotElf,       // no ELF file, not a shared library, or cut short
  WrongTarget,  // ELF for another class, byte order or processor
  NoRecord,     // a sound shared library without a Tenon note
  BadRecord,    // a Tenon note that breaks the rules of tn_cold
};

struct ColdResult {
  ColdStatus status = ColdStatus::NotElf;
  tn_cold cold{};         // valid with Ok; strings are terminated and printable
  std::string build_id;   // hexadecimal, mostly 40 digits; empty when the file has none
  std::string cause;      // what was found and what was wanted; empty with Ok
};

ColdResult read_cold_elf(std::span<const std::byte> file);

// "x86_64-linux-gnu": what tn_cold.target must say to fit this build.
const char* host_target();

}  // namespace tenon::loader
