#include "loader/cold/pe.h"

#include <string_view>

#include "loader/cold/bytes.h"

namespace tenon::loader {
namespace {

static_assert(std::endian::native == std::endian::little, "the fields of PE files are little-endian and read as they stand");

// Names and offsets as in Microsoft's "PE Format".
struct CoffHeader {
  uint16_t machine, n_sections;
  uint32_t time, symbols, n_symbols;
  uint16_t optional_size, flags;
};
static_assert(sizeof(CoffHeader) == 20);
struct Section {
  char name[8];
  uint32_t virtual_size, virtual_address, raw_size, raw_offset, relocations, lines;
  uint16_t n_relocations, n_lines;
  uint32_t flags;
};
static_assert(sizeof(Section) == 40);
struct DataDirectory {
  uint32_t address, size;
};
struct DebugEntry {
  uint32_t flags, time;
  uint16_t major, minor;
  uint32_t type, size, address, raw_offset;
};
static_assert(sizeof(DebugEntry) == 28);

constexpr uint64_t kHeaderOffsetAt = 0x3C;  // in the DOS header: where "PE\0\0" lies
constexpr uint16_t kDll = 0x2000, kPe32 = 0x10B, kPe64 = 0x20B;
constexpr uint64_t kDirectoryCountAt = 108, kDebugDirectoryAt = 112 + 6 * sizeof(DataDirectory);  // in a 64-bit optional header
constexpr uint32_t kCodeView = 2, kGuidBytes = 16;

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case 0x8664: return "x86_64";
    case 0xAA64: return "aarch64";
    case 0x014C: return "i386";
    case 0x01C4: return "arm";
    case 0x5064: return "riscv64";
    default: return "processor " + std::to_string(machine);
  }
}

ColdResult cut_short(const char* part, Bytes file) {
  return refuse(ColdStatus::NotALibrary, std::string("cut short: ") + part + " ends behind byte " + std::to_string(file.size()) + ", the end of the file");
}

bool named(const Section& section, std::string_view want) {
  const std::string_view have(section.name, sizeof section.name);
  return have.substr(0, have.find('\0')) == want;
}

class PeReader {
 public:
  explicit PeReader(Bytes file) : file_(file) {}

  ColdResult read() {
    ColdResult result = read_parts();
    result.kind = FileKind::Pe;
    result.machine = machine_;
    if (!result.cause.empty()) {
      result.cause = "a " + std::string(file_kind_name(FileKind::Pe)) + " file" + (machine_.empty() ? "" : " for " + machine_) + ": " + result.cause;
    }
    return result;
  }

 private:
  ColdResult read_parts() {
    if (auto bad = take_headers()) return *bad;
    for (uint32_t i = 0; i < coff_.n_sections; ++i) {
      const auto section = section_at(i);
      if (!section) return cut_short("the table of sections", file_);
      // Uninitialised data have a size and no bytes.
      if (section->raw_offset == 0) continue;
      const auto bytes = range(file_, section->raw_offset, section->raw_size);
      if (!bytes) return cut_short(("section " + std::to_string(i)).c_str(), file_);
      if (named(*section, ".tenon")) notes_.take(*bytes, alignof(tn_cold));
    }
    take_build_id();
    return notes_.result("section .tenon with a record");
  }

  // Everything in front of the table of sections.
  std::optional<ColdResult> take_headers() {
    const auto at = read_at<uint32_t>(file_, kHeaderOffsetAt);
    const auto magic = at ? read_at<uint32_t>(file_, *at) : std::nullopt;
    if (file_.size() < 2 || file_[0] != std::byte{'M'} || file_[1] != std::byte{'Z'} || !magic || *magic != 0x4550 /* "PE\0\0" */) {
      return refuse(ColdStatus::NotALibrary, "no PE header behind \"MZ\"");
    }
    const auto coff = read_at<CoffHeader>(file_, uint64_t{*at} + 4);
    if (!coff) return cut_short("the header", file_);
    coff_ = *coff;
    machine_ = machine_name(coff_.machine);
    if ((coff_.flags & kDll) == 0) return refuse(ColdStatus::NotALibrary, "no library: the DLL flag is not set");
    const auto optional = range(file_, uint64_t{*at} + 4 + sizeof(CoffHeader), coff_.optional_size);
    if (!optional) return cut_short("the optional header", file_);
    const auto width = read_at<uint16_t>(*optional, 0);
    if (width == kPe32) return refuse(ColdStatus::WrongTarget, "the file is 32-bit, plugins are 64-bit");
    if (width != kPe64) return refuse(ColdStatus::NotALibrary, "optional header " + std::to_string(width.value_or(0)) + ", a 64-bit file has 523");
    optional_ = *optional;
    sections_at_ = uint64_t{*at} + 4 + sizeof(CoffHeader) + coff_.optional_size;
    return std::nullopt;
  }

  std::optional<Section> section_at(uint32_t i) const { return read_at<Section>(file_, sections_at_ + uint64_t{i} * sizeof(Section)); }

  // The bytes at a place of the mapped image, as far as they stand in the file.
  std::optional<Bytes> image(uint32_t address, uint32_t size) const {
    for (uint32_t i = 0; i < coff_.n_sections; ++i) {
      const auto s = section_at(i);
      if (!s || s->raw_offset == 0 || address < s->virtual_address || address - s->virtual_address > s->raw_size) continue;
      const auto bytes = range(file_, s->raw_offset, s->raw_size);
      return bytes ? range(*bytes, address - s->virtual_address, size) : std::nullopt;
    }
    return std::nullopt;
  }

  // From the debug record: "RSDS", then a GUID. Absent in many files; whatever does not fit counts as absent.
  void take_build_id() {
    if (read_at<uint32_t>(optional_, kDirectoryCountAt).value_or(0) <= 6) return;
    const auto directory = read_at<DataDirectory>(optional_, kDebugDirectoryAt);
    const auto entries = directory ? image(directory->address, directory->size) : std::nullopt;
    if (!entries) return;
    for (uint64_t at = 0; const auto entry = read_at<DebugEntry>(*entries, at); at += sizeof(DebugEntry)) {
      if (entry->type != kCodeView) continue;
      const auto record = range(file_, entry->raw_offset, entry->size);
      if (!record || record->size() < 4 + kGuidBytes || std::memcmp(record->data(), "RSDS", 4) != 0) continue;
      return notes_.set_build_id(record->subspan(4, kGuidBytes));
    }
  }

  Bytes file_, optional_;
  CoffHeader coff_{};
  uint64_t sections_at_ = 0;
  std::string machine_;
  NoteReader notes_;
};

}  // namespace

ColdResult read_cold_pe(std::span<const std::byte> file) { return PeReader(file).read(); }

}  // namespace tenon::loader
