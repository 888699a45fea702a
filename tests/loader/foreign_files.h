// tests/loader/foreign_files.h - Windows and macOS libraries, written byte by byte: just what a reader of records looks at.
#pragma once
#include <tenon/plugin.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

using FileBytes = std::vector<std::byte>;

inline tn_cold foreign_record(const char* target) {
  tn_cold cold = {sizeof(tn_cold), 1, TN_ABI_CURRENT, TN_ABI_CURRENT, "test.foreign", "1.2.3", "", {0, 0, 0, 0}, 0, 1, {"driver.dll"}};
  std::strcpy(cold.target, target);
  return cold;
}

inline FileBytes note_of(const tn_cold& cold) {
  const tn_note note = {12, sizeof(tn_cold), TN_NOTE_TYPE, TN_NOTE_NAME, cold};
  const auto* data = reinterpret_cast<const std::byte*>(&note);
  return {data, data + sizeof note};
}

// Puts a little-endian number at an offset; the file grows as needed.
template <class T>
void put_at(FileBytes* file, size_t offset, T value) {
  if (file->size() < offset + sizeof value) file->resize(offset + sizeof value);
  std::memcpy(file->data() + offset, &value, sizeof value);
}
inline void put_bytes(FileBytes* file, size_t offset, const FileBytes& bytes) {
  if (file->size() < offset + bytes.size()) file->resize(offset + bytes.size());
  std::memcpy(file->data() + offset, bytes.data(), bytes.size());
}
inline void put_name(FileBytes* file, size_t offset, const std::string& name) {
  for (size_t i = 0; i < name.size(); ++i) put_at(file, offset + i, name[i]);
}
template <class T>
void put_big(FileBytes* file, size_t offset, T value) {
  for (size_t i = 0; i < sizeof value; ++i) put_at(file, offset + i, static_cast<uint8_t>(value >> (8 * (sizeof value - 1 - i))));
}

// Where things stand in the files made here, for tests that damage them.
struct PeLayout {
  static constexpr size_t kSignature = 0x80, kCoff = kSignature + 4, kOptional = kCoff + 20, kOptionalSize = 240, kSections = kOptional + kOptionalSize;
};
struct PeOptions {
  uint16_t machine = 0x8664, flags = 0x2022 /* DLL, executable, large addresses */, width = 0x20B;
  std::string section = ".tenon";
  FileBytes notes = note_of(foreign_record("x86_64-windows-gnu"));
  bool guid = true;
};
// Three sections: .text, .rdata with the debug record, the one with the notes; padded to 512 bytes each, as linkers do.
inline FileBytes pe_file(const PeOptions& o = {}) {
  using L = PeLayout;
  FileBytes file;
  put_name(&file, 0, "MZ");
  put_at<uint32_t>(&file, 0x3C, L::kSignature);
  put_name(&file, L::kSignature, "PE");
  put_at<uint16_t>(&file, L::kCoff, o.machine);
  put_at<uint16_t>(&file, L::kCoff + 2, 3);
  put_at<uint16_t>(&file, L::kCoff + 16, L::kOptionalSize);
  put_at<uint16_t>(&file, L::kCoff + 18, o.flags);
  put_at<uint16_t>(&file, L::kOptional, o.width);
  put_at<uint32_t>(&file, L::kOptional + 108, 16);
  if (o.guid) {
    put_at<uint32_t>(&file, L::kOptional + 160, 0x2000);
    put_at<uint32_t>(&file, L::kOptional + 164, 28);
  }
  const std::pair<std::string, uint32_t> sections[] = {{".text", 0x200}, {".rdata", 0x200}, {o.section, static_cast<uint32_t>((o.notes.size() + 511) / 512 * 512)}};
  uint32_t offset = 0x400, address = 0x1000;
  for (size_t i = 0; i < 3; ++i) {
    const size_t at = L::kSections + i * 40;
    put_name(&file, at, sections[i].first);
    put_at<uint32_t>(&file, at + 8, sections[i].second);
    put_at<uint32_t>(&file, at + 12, address);
    put_at<uint32_t>(&file, at + 16, sections[i].second);
    put_at<uint32_t>(&file, at + 20, offset);
    put_at<uint32_t>(&file, at + 36, 0x40000040);
    offset += sections[i].second;
    address += 0x1000;
  }
  file.resize(offset);
  put_at<uint32_t>(&file, 0x600 + 12, 2);  // the debug entry: CodeView
  put_at<uint32_t>(&file, 0x600 + 16, 24);
  put_at<uint32_t>(&file, 0x600 + 24, 0x600 + 28);
  put_name(&file, 0x600 + 28, "RSDS");
  for (uint8_t i = 0; i < 16; ++i) put_at<uint8_t>(&file, 0x600 + 32 + i, static_cast<uint8_t>(0xA0 + i));
  put_bytes(&file, 0x800, o.notes);
  return file;
}

struct MachOLayout {
  static constexpr size_t kCommands = 32, kText = kCommands, kTenon = kText + 72 + 80, kSection = kTenon + 72, kUuid = kSection + 80, kNotes = 0x400;
};
struct MachOOptions {
  uint32_t cpu = 0x01000007, file_type = 8, section_type = 0;
  std::string segment = "__TENON", section = "__cold";
  FileBytes notes = note_of(foreign_record("x86_64-macos"));
};
// Segments __TEXT (the headers) and __TENON with the notes, and a UUID.
inline FileBytes macho_file(const MachOOptions& o = {}) {
  using L = MachOLayout;
  FileBytes file(L::kNotes);
  put_bytes(&file, L::kNotes, o.notes);
  const auto segment = [&](size_t at, const std::string& name, uint64_t offset, uint64_t size, const std::string& section) {
    put_at<uint32_t>(&file, at, 0x19);
    put_at<uint32_t>(&file, at + 4, 72 + 80);
    put_name(&file, at + 8, name);
    put_at<uint64_t>(&file, at + 32, size);
    put_at<uint64_t>(&file, at + 40, offset);
    put_at<uint64_t>(&file, at + 48, size);
    put_at<uint32_t>(&file, at + 64, 1);
    put_name(&file, at + 72, section);
    put_name(&file, at + 88, name);
    put_at<uint64_t>(&file, at + 112, size);
    put_at<uint32_t>(&file, at + 120, static_cast<uint32_t>(offset));
  };
  put_at<uint32_t>(&file, 0, 0xFEEDFACF);
  put_at<uint32_t>(&file, 4, o.cpu);
  put_at<uint32_t>(&file, 12, o.file_type);
  put_at<uint32_t>(&file, 16, 3);
  put_at<uint32_t>(&file, 20, L::kUuid + 24 - L::kCommands);
  segment(L::kText, "__TEXT", 0, L::kNotes, "__text");
  segment(L::kTenon, o.segment, L::kNotes, o.notes.size(), o.section);
  put_at<uint32_t>(&file, L::kSection + 64, o.section_type);
  put_at<uint32_t>(&file, L::kUuid, 0x1B);
  put_at<uint32_t>(&file, L::kUuid + 4, 24);
  for (uint8_t i = 0; i < 16; ++i) put_at<uint8_t>(&file, L::kUuid + 8 + i, static_cast<uint8_t>(0xB0 + i));
  return file;
}

// A universal file of the given slices; `wide` has 64-bit offsets.
inline FileBytes universal_file(const std::vector<std::pair<uint32_t, FileBytes>>& slices, bool wide = false) {
  FileBytes file(0x400);
  put_big<uint32_t>(&file, 0, wide ? 0xCAFEBABF : 0xCAFEBABE);
  put_big<uint32_t>(&file, 4, static_cast<uint32_t>(slices.size()));
  for (size_t i = 0; i < slices.size(); ++i) {
    const size_t at = 8 + i * (wide ? 32 : 20), offset = file.size();
    put_big<uint32_t>(&file, at, slices[i].first);
    if (wide) {
      put_big<uint64_t>(&file, at + 8, offset);
      put_big<uint64_t>(&file, at + 16, slices[i].second.size());
    } else {
      put_big<uint32_t>(&file, at + 8, static_cast<uint32_t>(offset));
      put_big<uint32_t>(&file, at + 12, static_cast<uint32_t>(slices[i].second.size()));
    }
    put_bytes(&file, offset, slices[i].second);
  }
  return file;
}
