#include "loader/cold/bytes.h"

#include <iterator>
#include <string_view>

namespace tenon::loader {
namespace {

constexpr size_t kBuildIdDigits = 128;  // real ones have 40; a longer one is no id
constexpr uint32_t kGnuBuildId = 3;

struct NoteHead {
  uint32_t name_size, desc_size, type;
};
struct Note {
  uint32_t type;
  Bytes name, desc;
};

// Takes the next note off the front; nothing at the end or where sizes do not fit.
std::optional<Note> next_note(Bytes* rest, uint64_t align) {
  const auto head = read_at<NoteHead>(*rest, 0);
  if (!head) return std::nullopt;
  const auto up = [align](uint64_t n) { return (n + align - 1) / align * align; };
  const uint64_t desc_at = up(sizeof(NoteHead) + uint64_t{head->name_size});
  const auto name = range(*rest, sizeof(NoteHead), head->name_size);
  const auto desc = range(*rest, desc_at, head->desc_size);
  if (!name || !desc) return std::nullopt;
  const uint64_t end = up(desc_at + head->desc_size);
  *rest = end < rest->size() ? rest->subspan(end) : Bytes{};
  return Note{head->type, *name, *desc};
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

}  // namespace

const char* file_kind_name(FileKind kind) {
  switch (kind) {
    case FileKind::Elf: return "ELF";
    case FileKind::Pe: return "Windows (PE)";
    case FileKind::MachO: return "macOS (Mach-O)";
    default: return "unknown";
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

void NoteReader::take(Bytes notes, uint64_t align) {
  while (const auto note = next_note(&notes, align)) {
    if (note->type == kGnuBuildId && named(note->name, "GNU")) set_build_id(note->desc);
    if (note->type == TN_NOTE_TYPE && named(note->name, TN_NOTE_NAME)) take_record(note->desc);
  }
}

void NoteReader::set_build_id(Bytes id) { build_id_ = hex(id); }

void NoteReader::take_record(Bytes desc) {
  ++records_;
  const auto cold = read_at<tn_cold>(desc, 0);
  if (!cold) {
    fault_ = "record of " + std::to_string(desc.size()) + " bytes, at least " + std::to_string(sizeof(tn_cold)) + " wanted";
    return;
  }
  fault_ = fault_of(*cold, desc.size());
  cold_ = *cold;
}

ColdResult NoteReader::result(const std::string& place) const {
  ColdResult out;
  if (records_ == 0) {
    out = refuse(ColdStatus::NoRecord, "the library has no " + place);
  } else if (records_ > 1) {
    out = refuse(ColdStatus::BadRecord, std::to_string(records_) + " records in one file, one wanted");
  } else if (!fault_.empty()) {
    out = refuse(ColdStatus::BadRecord, fault_);
  } else {
    out.status = ColdStatus::Ok;
    out.cold = cold_;
  }
  out.build_id = build_id_;
  return out;
}

}  // namespace tenon::loader
