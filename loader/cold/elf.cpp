#include "loader/cold/elf.h"

#include <elf.h>

#include <bit>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

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
constexpr size_t kBuildIdDigits = 128;  // real ones have 40; a longer one is no id

using Bytes = std::span<const std::byte>;

// A copy of T at an offset, or nothing when it does not lie wholly inside.
template <class T>
std::optional<T> read_at(Bytes bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::optional<Bytes> range(Bytes bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) return std::nullopt;
  return bytes.subspan(offset, size);
}

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

ColdResult refuse(ColdStatus status, std::string cause) {
  ColdResult result;
  result.status = status;
  result.cause = std::move(cause);
  return result;
}

std::string first_bytes(Bytes file) {
  std::string text;
  for (size_t i = 0; i < file.size() && i < 4; ++i) {
    const char c = static_cast<char>(file[i]);
    text += c >= ' ' && c <= '~' ? c : '.';
  }
  return text;
}

// Everything about the file that can be wrong before its segments are looked at.
std::optional<ColdResult> check_header(Bytes file, Elf64_Ehdr* out) {
  if (file.size() < SELFMAG || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0) {
    return refuse(ColdStatus::NotElf, "begins with \"" + first_bytes(file) + "\", an ELF file with 7F \"ELF\"");
  }
  // Class, order and machine stand at the same places in 32-bit files, so they are judged before the size.
  if (file.size() < 20) return refuse(ColdStatus::NotElf, "cut short: " + std::to_string(file.size()) + " bytes");
  const auto ident = [&](int i) { return static_cast<uint8_t>(file[static_cast<size_t>(i)]); };
  if (ident(EI_CLASS) != ELFCLASS64) return refuse(ColdStatus::WrongTarget, "the file is 32-bit, this host 64-bit");
  if (ident(EI_DATA) != kByteOrder) return refuse(ColdStatus::WrongTarget, "the file has the other byte order");
  const auto machine = *read_at<uint16_t>(file, 18);
  if (machine != kMachine) {
    return refuse(ColdStatus::WrongTarget, "the file is for " + machine_name(machine) + ", this host is " + machine_name(kMachine));
  }
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header) return refuse(ColdStatus::NotElf, "cut short: " + std::to_string(file.size()) + " bytes, the header alone has 64");
  if (header->e_type != ET_DYN) {
    return refuse(ColdStatus::NotElf, "ELF type " + std::to_string(header->e_type) + ", a shared library has 3");
  }
  if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == 0 || header->e_phnum == PN_XNUM) {
    return refuse(ColdStatus::NotElf, "program headers: " + std::to_string(header->e_phnum) + " of " +
                                          std::to_string(header->e_phentsize) + " bytes, expected 1..65534 of 56");
  }
  *out = *header;
  return std::nullopt;
}

struct Note {
  uint32_t type;
  Bytes name, desc;
};

// Takes the next note off the front; nothing at the end or where sizes do not fit.
std::optional<Note> next_note(Bytes* rest, uint64_t align) {
  const auto head = read_at<Elf64_Nhdr>(*rest, 0);
  if (!head) return std::nullopt;
  const auto up = [align](uint64_t n) { return (n + align - 1) / align * align; };
  const uint64_t desc_at = up(sizeof(Elf64_Nhdr) + uint64_t{head->n_namesz});
  const auto name = range(*rest, sizeof(Elf64_Nhdr), head->n_namesz);
  const auto desc = range(*rest, desc_at, head->n_descsz);
  if (!name || !desc) return std::nullopt;
  const uint64_t end = up(desc_at + head->n_descsz);
  *rest = end < rest->size() ? rest->subspan(end) : Bytes{};
  return Note{head->n_type, *name, *desc};
}

bool named(Bytes name, std::string_view want) {
  const std::string_view have(reinterpret_cast<const char*>(name.data()), name.size());
  return have.substr(0, have.find('\0')) == want;
}

std::string hex(Bytes bytes) {
  std::string text;
  for (std::byte b : bytes) {
    if (text.size() + 2 > kBuildIdDigits) break;
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<uint8_t>(b) >> 4];
    text += kDigits[static_cast<uint8_t>(b) & 15];
  }
  return text;
}

// Terminated, and printable without spaces: these texts go into messages and file names.
template <size_t N>
bool clean(const char (&text)[N], bool may_be_empty) {
  for (size_t i = 0; i < N; ++i) {
    if (text[i] == '\0') return i > 0 || may_be_empty;
    if (text[i] <= ' ' || text[i] > '~') return false;
  }
  return false;
}

// Empty when the record keeps every rule.
std::string fault_of(const tn_cold& cold, size_t desc_bytes) {
  const auto number = [](uint64_t n) { return std::to_string(n); };
  if (cold.size < sizeof(tn_cold)) return "record size " + number(cold.size) + ", at least " + number(sizeof(tn_cold)) + " wanted";
  if (cold.size > desc_bytes) return "record size " + number(cold.size) + ", but the note holds " + number(desc_bytes);
  if (cold.note_version != 1) return "record version " + number(cold.note_version) + ", this host reads 1";
  if (cold.abi_min > cold.abi_max) return "its lowest ABI version is above its highest";
  if (!clean(cold.id, false)) return "the id is empty, unterminated or not printable";
  if (!clean(cold.version, true)) return "the version is unterminated or not printable";
  if (!clean(cold.target, false)) return "the target is empty, unterminated or not printable";
  if (cold.n_need > std::size(cold.need)) return "names " + number(cold.n_need) + " libraries, at most " + number(std::size(cold.need));
  for (uint32_t i = 0; i < cold.n_need; ++i) {
    if (!clean(cold.need[i], false)) return "library name " + number(i) + " is empty, unterminated or not printable";
  }
  return {};
}

class Reader {
 public:
  explicit Reader(Bytes file) : file_(file) {}

  ColdResult read() {
    Elf64_Ehdr header{};
    if (auto bad = check_header(file_, &header)) return *bad;
    for (uint32_t i = 0; i < header.e_phnum; ++i) {
      const uint64_t step = uint64_t{i} * sizeof(Elf64_Phdr);
      const auto segment = header.e_phoff > UINT64_MAX - step ? std::nullopt : read_at<Elf64_Phdr>(file_, header.e_phoff + step);
      if (!segment) return refuse(ColdStatus::NotElf, "cut short: program header " + std::to_string(i) + " lies outside the file");
      if (auto bad = take(*segment, i)) return *bad;
    }
    if (records_ == 0) return with_build_id(refuse(ColdStatus::NoRecord, "the library has no Tenon note"));
    if (records_ > 1) return with_build_id(refuse(ColdStatus::BadRecord, std::to_string(records_) + " records in one file, one wanted"));
    if (!fault_.empty()) return with_build_id(refuse(ColdStatus::BadRecord, fault_));
    result_.status = ColdStatus::Ok;
    return result_;
  }

 private:
  std::optional<ColdResult> take(const Elf64_Phdr& segment, uint32_t index) {
    if (segment.p_type != PT_LOAD && segment.p_type != PT_NOTE && segment.p_type != PT_DYNAMIC) return std::nullopt;
    const auto bytes = range(file_, segment.p_offset, segment.p_filesz);
    if (!bytes) {
      return refuse(ColdStatus::NotElf, "cut short: segment " + std::to_string(index) + " ends behind byte " +
                                            std::to_string(file_.size()) + ", the end of the file");
    }
    if (segment.p_type == PT_NOTE) take_notes(*bytes, segment.p_align == 8 ? 8 : 4);
    return std::nullopt;
  }

  void take_notes(Bytes rest, uint64_t align) {
    while (const auto note = next_note(&rest, align)) {
      if (note->type == NT_GNU_BUILD_ID && named(note->name, "GNU")) result_.build_id = hex(note->desc);
      if (note->type == TN_NOTE_TYPE && named(note->name, TN_NOTE_NAME)) take_record(note->desc);
    }
  }

  void take_record(Bytes desc) {
    ++records_;
    const auto cold = read_at<tn_cold>(desc, 0);
    if (!cold) {
      fault_ = "record of " + std::to_string(desc.size()) + " bytes, at least " + std::to_string(sizeof(tn_cold)) + " wanted";
      return;
    }
    fault_ = fault_of(*cold, desc.size());
    result_.cold = *cold;
  }

  ColdResult with_build_id(ColdResult bad) const {
    bad.build_id = result_.build_id;
    return bad;
  }

  Bytes file_;
  ColdResult result_;
  uint32_t records_ = 0;
  std::string fault_;
};

}  // namespace

ColdResult read_cold_elf(std::span<const std::byte> file) { return Reader(file).read(); }

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
