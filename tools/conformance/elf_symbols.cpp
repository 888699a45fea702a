#include "tools/conformance/elf_symbols.h"

#include <elf.h>

#include <cstring>
#include <optional>

namespace tenon::conformance {
namespace {

using Bytes = std::span<const std::byte>;

template <class T>
std::optional<T> at(Bytes file, uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

std::string text_at(Bytes file, const Elf64_Shdr& strings, uint64_t offset) {
  std::string text;
  for (uint64_t i = strings.sh_offset + offset; offset < strings.sh_size && i < file.size() && file[i] != std::byte{0}; ++i, ++offset)
    text += static_cast<char>(file[i]);
  return text;
}

void take_symbols(Bytes file, const Elf64_Shdr& table, const Elf64_Shdr& strings, ElfSymbols* out) {
  for (uint64_t i = 1; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
    const auto symbol = at<Elf64_Sym>(file, table.sh_offset + i * sizeof(Elf64_Sym));
    if (!symbol) return void(out->fault = "the symbol table lies outside the file");
    const unsigned bind = ELF64_ST_BIND(symbol->st_info), visible = ELF64_ST_VISIBILITY(symbol->st_other);
    if (symbol->st_shndx == SHN_UNDEF || bind == STB_LOCAL || visible == STV_HIDDEN || visible == STV_INTERNAL) continue;
    const std::string name = text_at(file, strings, symbol->st_name);
    out->exported.push_back(name);
    if (bind == STB_GNU_UNIQUE) out->unique.push_back(name);
  }
}

void take_needed(Bytes file, const Elf64_Shdr& table, const Elf64_Shdr& strings, ElfSymbols* out) {
  for (uint64_t i = 0; i < table.sh_size / sizeof(Elf64_Dyn); ++i) {
    const auto entry = at<Elf64_Dyn>(file, table.sh_offset + i * sizeof(Elf64_Dyn));
    if (!entry || entry->d_tag == DT_NULL) return;
    if (entry->d_tag == DT_NEEDED) out->needed.push_back(text_at(file, strings, entry->d_un.d_val));
  }
}

}  // namespace

ElfSymbols read_elf_symbols(Bytes file) {
  ElfSymbols out;
  const auto header = at<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) {
    out.fault = "not a 64-bit ELF file";
    return out;
  }
  std::vector<Elf64_Shdr> sections;
  for (uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto section = at<Elf64_Shdr>(file, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) break;
    sections.push_back(*section);
  }
  bool any = false;
  for (const Elf64_Shdr& s : sections) {
    if (s.sh_link >= sections.size()) continue;
    if (s.sh_type == SHT_DYNSYM) take_symbols(file, s, sections[s.sh_link], &out), any = true;
    if (s.sh_type == SHT_DYNAMIC) take_needed(file, s, sections[s.sh_link], &out);
  }
  if (!any && out.fault.empty()) out.fault = "the file has no table of dynamic symbols among its sections";
  return out;
}

}  // namespace tenon::conformance
