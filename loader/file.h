// loader/file.h - one candidate file, opened for reading, with its identity. The first step that touches a file.
//
// Nothing that could block or have an effect is opened: pipes, devices and sockets are refused by their type first.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "loader/verdict.h"

namespace tenon::loader {

struct FileIdentity {
  uint64_t device = 0, inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

// A read-only mapping of a whole file.
class MappedFile {
 public:
  MappedFile() = default;
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Nothing on success; else not-found, not-regular-file, unreadable or empty-file.
  std::optional<Verdict> open(const std::string& path);
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }
  FileIdentity identity() const { return identity_; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
  FileIdentity identity_;
};

}  // namespace tenon::loader
