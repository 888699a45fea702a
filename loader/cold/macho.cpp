#include "loader/cold/macho.h"

#include <string_view>

#include "loader/cold/bytes.h"

namespace tenon::loader {
namespace {

static_assert(std::endian::native == std::endian::little, "the fields of the files read here are little-endian and read as they stand");

// Names and offsets as in Apple's <mach-o/loader.h> and <mach-o/fat.h>.
struct Header {
  uint32_t magic, cpu_type, cpu_subtype, file_type, n_commands, commands_size, flags, reserved;
};
static_assert(sizeof(Header) == 32);
struct Command {
  uint32_t type, size;
};
struct Segment {
  Command head;
  char name[16];
  uint64_t address, memory_size, file_offset, file_size;
  uint32_t max_protection, protection, n_sections, flags;
};
static_assert(sizeof(Segment) == 72);
struct Section {
  char name[16], segment[16];
  uint64_t address, size;
  uint32_t offset, align, relocations, n_relocations, flags, reserved[3];
};
static_assert(sizeof(Section) == 80);

constexpr uint32_t kThin64 = 0xFEEDFACF, kThin32 = 0xFEEDFACE, kSwapped64 = 0xCFFAEDFE, kSwapped32 = 0xCEFAEDFE;
constexpr uint32_t kFat32 = 0xCAFEBABE, kFat64 = 0xCAFEBABF;
constexpr uint32_t kLibrary = 6, kBundle = 8, kSegment64 = 0x19, kUuid = 0x1B, kUuidBytes = 16, kSectionTypeMask = 0xFF;
constexpr uint32_t kX86_64 = 0x01000007, kArm64 = 0x0100000C;
#if defined(__aarch64__)
constexpr uint32_t kHostCpu = kArm64;
#else
constexpr uint32_t kHostCpu = kX86_64;
#endif
// A Java class begins with the same four bytes; its next four are a version, 45 at least.
constexpr uint32_t kMostSlices = 44;

std::string machine_name(uint32_t cpu) {
  switch (cpu) {
    case kX86_64: return "x86_64";
    case kArm64: return "aarch64";
    case 7: return "i386";
    case 12: return "arm";
    case 18: return "ppc";
    case 0x01000012: return "ppc64";
    default: return "processor " + std::to_string(cpu);
  }
}

template <size_t N>
bool named(const char (&name)[N], std::string_view want) {
  const std::string_view have(name, N);
  return have.substr(0, have.find('\0')) == want;
}

uint64_t swapped(uint64_t value) { return __builtin_bswap64(value); }
uint32_t swapped(uint32_t value) { return __builtin_bswap32(value); }

// The number at an offset of a universal file's own tables, which are big-endian.
template <class T>
std::optional<T> big_at(Bytes file, uint64_t offset) {
  const auto value = read_at<T>(file, offset);
  return value ? std::optional<T>(swapped(*value)) : std::nullopt;
}

ColdResult cut_short(const std::string& part, Bytes file) {
  return refuse(ColdStatus::NotALibrary, "cut short: " + part + " ends behind byte " + std::to_string(file.size()) + ", the end of the file");
}

// One architecture's file.
class ThinReader {
 public:
  explicit ThinReader(Bytes file) : file_(file) {}

  ColdResult read() {
    ColdResult result = read_parts();
    result.machine = machine_;
    return result;
  }

 private:
  ColdResult read_parts() {
    const uint32_t magic = read_at<uint32_t>(file_, 0).value_or(0);
    if (magic == kThin32) return refuse(ColdStatus::WrongTarget, "the file is 32-bit, plugins are 64-bit");
    if (magic == kSwapped64 || magic == kSwapped32) return refuse(ColdStatus::WrongTarget, "the file has the other byte order");
    if (magic != kThin64) return refuse(ColdStatus::NotALibrary, "begins with \"" + first_bytes(file_) + "\"");
    const auto header = read_at<Header>(file_, 0);
    if (!header) return cut_short("the header", file_);
    machine_ = machine_name(header->cpu_type);
    if (header->file_type != kLibrary && header->file_type != kBundle) {
      return refuse(ColdStatus::NotALibrary, "file type " + std::to_string(header->file_type) + ", a library has 6, a bundle 8");
    }
    const auto commands = range(file_, sizeof(Header), header->commands_size);
    if (!commands) return cut_short("the load commands", file_);
    uint64_t at = 0;
    for (uint32_t i = 0; i < header->n_commands; ++i) {
      const auto head = read_at<Command>(*commands, at);
      const auto command = head && head->size >= sizeof(Command) ? range(*commands, at, head->size) : std::nullopt;
      if (!command) return refuse(ColdStatus::NotALibrary, "load command " + std::to_string(i) + " does not fit into its table");
      if (auto bad = take(*command, head->type, i)) return *bad;
      at += head->size;
    }
    return notes_.result("section __TENON,__cold with a record");
  }

  std::optional<ColdResult> take(Bytes command, uint32_t type, uint32_t index) {
    if (type == kUuid) {
      if (const auto uuid = range(command, sizeof(Command), kUuidBytes)) notes_.set_build_id(*uuid);
    }
    if (type != kSegment64) return std::nullopt;
    const std::string what = "load command " + std::to_string(index);
    const auto segment = read_at<Segment>(command, 0);
    if (!segment) return refuse(ColdStatus::NotALibrary, what + " is too short for a segment");
    if (!range(file_, segment->file_offset, segment->file_size)) return cut_short("the segment of " + what, file_);
    for (uint32_t i = 0; i < segment->n_sections; ++i) {
      const auto section = read_at<Section>(command, sizeof(Segment) + uint64_t{i} * sizeof(Section));
      if (!section) return refuse(ColdStatus::NotALibrary, what + " is too short for its " + std::to_string(segment->n_sections) + " sections");
      if (!named(section->segment, "__TENON") || !named(section->name, "__cold")) continue;
      if ((section->flags & kSectionTypeMask) != 0) continue;  // not plain bytes: zero-filled sections have none in the file
      const auto bytes = range(file_, section->offset, section->size);
      if (!bytes) return cut_short("section __TENON,__cold", file_);
      notes_.take(*bytes, alignof(tn_cold));
    }
    return std::nullopt;
  }

  Bytes file_;
  std::string machine_;
  NoteReader notes_;
};

struct Slice {
  uint32_t cpu = 0;
  uint64_t offset = 0, size = 0;
};

std::optional<Slice> slice_at(Bytes file, bool wide, uint32_t index) {
  const uint64_t at = 8 + uint64_t{index} * (wide ? 32 : 20);
  const auto number = [&](uint64_t from) { return wide ? big_at<uint64_t>(file, from) : std::optional<uint64_t>(big_at<uint32_t>(file, from)); };
  const auto cpu = big_at<uint32_t>(file, at);
  const auto offset = number(at + 8), size = number(at + (wide ? 16 : 12));
  return cpu && offset && size ? std::optional(Slice{*cpu, *offset, *size}) : std::nullopt;
}

ColdResult read_universal(Bytes file, bool wide) {
  const uint32_t count = big_at<uint32_t>(file, 4).value_or(0);
  if (count == 0 || count > kMostSlices) {
    return refuse(ColdStatus::NotALibrary, std::to_string(count) + " slices, a universal file has 1 to " + std::to_string(kMostSlices));
  }
  Slice chosen;
  for (uint32_t i = 0; i < count; ++i) {
    const auto slice = slice_at(file, wide, i);
    if (!slice) return cut_short("the table of " + std::to_string(count) + " slices", file);
    if (i == 0 || (slice->cpu == kHostCpu && chosen.cpu != kHostCpu)) chosen = *slice;
  }
  const auto bytes = range(file, chosen.offset, chosen.size);
  if (!bytes) return cut_short("the slice for " + machine_name(chosen.cpu), file);
  return ThinReader(*bytes).read();
}

}  // namespace

ColdResult read_cold_macho(std::span<const std::byte> file) {
  const uint32_t magic = big_at<uint32_t>(file, 0).value_or(0);
  ColdResult result = magic == kFat32 || magic == kFat64 ? read_universal(file, magic == kFat64) : ThinReader(file).read();
  result.kind = FileKind::MachO;
  if (!result.cause.empty()) {
    const std::string processor = result.machine.empty() ? "" : " for " + result.machine;
    result.cause = "a " + std::string(file_kind_name(FileKind::MachO)) + " file" + processor + ": " + result.cause;
  }
  return result;
}

}  // namespace tenon::loader
