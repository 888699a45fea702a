// loader/cold/record.h - what is learnt from a plugin file's bytes alone; no instruction of the file runs.
//
// Every reader of this folder takes foreign input: each offset is checked, nothing is trusted, any input gives an answer.
#pragma once
#include <tenon/plugin.h>

#include <cstddef>
#include <span>
#include <string>

namespace tenon::loader {

enum class FileKind { Unknown, Elf, Pe, MachO };

enum class ColdStatus {
  Ok,
  NotALibrary,  // of no known kind, not a shared library, or cut short
  WrongTarget,  // of a class, byte order or processor that no host of this kind of file takes
  NoRecord,     // a sound shared library without a Tenon record
  BadRecord,    // a Tenon record that breaks the rules of tn_cold
};

struct ColdResult {
  ColdStatus status = ColdStatus::NotALibrary;
  tn_cold cold{};         // valid with Ok; strings are terminated and printable
  std::string build_id;   // hexadecimal, mostly 40 or 32 digits; empty when the file has none
  std::string cause;      // what was found and what was wanted; empty with Ok
  FileKind kind = FileKind::Unknown;
  std::string machine;    // "x86_64", from the file's own header; empty where that could not be read
};

const char* file_kind_name(FileKind);  // "ELF", "Windows (PE)", "macOS (Mach-O)"

// "x86_64-linux-gnu": what tn_cold.target must say to fit this build, and the kind of file its dynamic linker takes.
const char* host_target();
constexpr FileKind kHostFileKind = FileKind::Elf;

}  // namespace tenon::loader
