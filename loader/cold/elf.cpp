#include "loader/cold/elf.h"

#include <elf.h>

#include "loader/cold/bytes.h"

namespace tenon::loader {
namespace {

static_assert(sizeof(void*) == 8, "the reader knows 64-bit ELF, as 64-bit hosts use it");

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
#error "name this processor's ELF machine number"
#endif
constexpr uint8_t kByteOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case EM_X86_64: return "x86_64";
    case EM_AARCH64: return "aarch64";
    case EM_386: return "i386";
    case EM_ARM: return "arm";
    case EM_RISCV: return "riscv";
    case EM_PPC64: return "ppc64";
    case EM_S390: return "s390";
    default: return "processor " + std::to_string(machine);
  }
}

// Everything about the file that can be wrong before its segments are looked at.
std::optional<ColdResult> check_header(Bytes file, Elf64_Ehdr* out) {
  if (file.size() < SELFMAG || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0) {
    return refuse(ColdStatus::NotALibrary, "begins with \"" + first_bytes(file) + "\", an ELF file with 7F \"ELF\"");
  }
  // Class, order and machine stand at the same places in 32-bit files, so they are judged before the size.
  if (file.size() < 20) return refuse(ColdStatus::NotALibrary, "cut short: " + std::to_string(file.size()) + " bytes");
  const auto ident = [&](int i) { return static_cast<uint8_t>(file[static_cast<size_t>(i)]); };
  if (ident(EI_CLASS) != ELFCLASS64) return refuse(ColdStatus::WrongTarget, "the file is 32-bit, this host 64-bit");
  if (ident(EI_DATA) != kByteOrder) return refuse(ColdStatus::WrongTarget, "the file has the other byte order");
  const auto machine = *read_at<uint16_t>(file, 18);
  if (machine != kMachine) {
    return refuse(ColdStatus::WrongTarget, "the file is for " + machine_name(machine) + ", this host is " + machine_name(kMachine));
  }
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header) return refuse(ColdStatus::NotALibrary, "cut short: " + std::to_string(file.size()) + " bytes, the header alone has 64");
  if (header->e_type != ET_DYN) {
    return refuse(ColdStatus::NotALibrary, "ELF type " + std::to_string(header->e_type) + ", a shared library has 3");
  }
  if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == 0 || header->e_phnum == PN_XNUM) {
    return refuse(ColdStatus::NotALibrary, "program headers: " + std::to_string(header->e_phnum) + " of " +
                                          std::to_string(header->e_phentsize) + " bytes, expected 1..65534 of 56");
  }
  *out = *header;
  return std::nullopt;
}

// One program header; notes go to the reader.
std::optional<ColdResult> take_segment(Bytes file, const Elf64_Phdr& segment, uint32_t index, NoteReader* notes) {
  if (segment.p_type != PT_LOAD && segment.p_type != PT_NOTE && segment.p_type != PT_DYNAMIC) return std::nullopt;
  const auto bytes = range(file, segment.p_offset, segment.p_filesz);
  if (!bytes) {
    return refuse(ColdStatus::NotALibrary, "cut short: segment " + std::to_string(index) + " ends behind byte " +
                                               std::to_string(file.size()) + ", the end of the file");
  }
  if (segment.p_type == PT_NOTE) notes->take(*bytes, segment.p_align == 8 ? 8 : 4);
  return std::nullopt;
}

ColdResult read(Bytes file) {
  Elf64_Ehdr header{};
  if (auto bad = check_header(file, &header)) return *bad;
  NoteReader notes;
  for (uint32_t i = 0; i < header.e_phnum; ++i) {
    const uint64_t step = uint64_t{i} * sizeof(Elf64_Phdr);
    const auto segment = header.e_phoff > UINT64_MAX - step ? std::nullopt : read_at<Elf64_Phdr>(file, header.e_phoff + step);
    if (!segment) return refuse(ColdStatus::NotALibrary, "cut short: program header " + std::to_string(i) + " lies outside the file");
    if (auto bad = take_segment(file, *segment, i, &notes)) return *bad;
  }
  ColdResult result = notes.result("Tenon note");
  result.machine = machine_name(kMachine);
  return result;
}

}  // namespace

ColdResult read_cold_elf(std::span<const std::byte> file) {
  ColdResult result = read(file);
  if (file.size() >= SELFMAG && std::memcmp(file.data(), ELFMAG, SELFMAG) == 0) result.kind = FileKind::Elf;
  return result;
}

const char* host_target() {
#if defined(__x86_64__) && defined(__GLIBC__)
  return "x86_64-linux-gnu";
#elif defined(__aarch64__) && defined(__GLIBC__)
  return "aarch64-linux-gnu";
#elif defined(__x86_64__)
  return "x86_64-linux-musl";
#else
  return "aarch64-linux-musl";
#endif
}

}  // namespace tenon::loader
