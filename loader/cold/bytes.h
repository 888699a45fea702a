// loader/cold/bytes.h - what the readers of the three kinds of file share: checked access, and the notes with the record.
#pragma once
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "loader/cold/record.h"

namespace tenon::loader {

using Bytes = std::span<const std::byte>;

// A copy of T at an offset, or nothing when it does not lie wholly inside.
template <class T>
std::optional<T> read_at(Bytes bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

inline std::optional<Bytes> range(Bytes bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) return std::nullopt;
  return bytes.subspan(offset, size);
}

ColdResult refuse(ColdStatus status, std::string cause);

// The first bytes of a file that is not what it should be, without its control characters.
std::string first_bytes(Bytes file);

// Collects what the notes of one file say. The bytes around the record are those of an ELF note in every kind of file.
class NoteReader {
 public:
  // Notes one behind the other, each part aligned to `align`; ends quietly where sizes do not fit.
  void take(Bytes notes, uint64_t align);
  void set_build_id(Bytes id);

  // The answer when all notes were taken: Ok, NoRecord or BadRecord. `place` names where the record should have been.
  ColdResult result(const std::string& place) const;

 private:
  void take_record(Bytes desc);

  tn_cold cold_{};
  std::string build_id_, fault_;
  uint32_t records_ = 0;
};

}  // namespace tenon::loader
