#include "loader/cold/read.h"

#include "loader/cold/bytes.h"

namespace tenon::loader {

FileKind file_kind(Bytes file) {
  const auto begins = [file](std::initializer_list<uint8_t> magic) {
    if (file.size() < magic.size()) return false;
    size_t i = 0;
    for (uint8_t byte : magic) {
      if (static_cast<uint8_t>(file[i++]) != byte) return false;
    }
    return true;
  };
  if (begins({0x7F, 'E', 'L', 'F'})) return FileKind::Elf;
  if (begins({'M', 'Z'})) return FileKind::Pe;
  // Thin files of both byte orders and word sizes, and universal ones.
  for (uint8_t last : {0xCE, 0xCF}) {
    if (begins({last, 0xFA, 0xED, 0xFE}) || begins({0xFE, 0xED, 0xFA, last})) return FileKind::MachO;
  }
  if (begins({0xCA, 0xFE, 0xBA, 0xBE}) || begins({0xCA, 0xFE, 0xBA, 0xBF})) return FileKind::MachO;
  return FileKind::Unknown;
}

ColdResult read_cold(Bytes file) {
  switch (file_kind(file)) {
    case FileKind::Pe: return read_cold_pe(file);
    case FileKind::MachO: return read_cold_macho(file);
    default: return read_cold_elf(file);  // says of an unknown file how it begins
  }
}

}  // namespace tenon::loader
