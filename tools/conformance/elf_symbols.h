// tools/conformance/elf_symbols.h - what a shared library exports and links, read from its bytes.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tenon::conformance {

struct ElfSymbols {
  std::vector<std::string> exported;  // defined, global or weak, visible to others
  std::vector<std::string> unique;    // STB_GNU_UNIQUE among them: one for the whole process, prevents unloading
  std::vector<std::string> needed;    // DT_NEEDED
  std::string fault;                  // not empty: the file could not be read, and why
};
ElfSymbols read_elf_symbols(std::span<const std::byte> file);

}  // namespace tenon::conformance
