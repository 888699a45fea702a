// loader/file.h - one candidate file, opened for reading, with what identifies it. The first step that touches a file.
//
// Nothing that could block or have an effect is opened: pipes, devices and sockets are refused by their type first. All
// that is said about the file is said of the descriptor, which stays open as long as the object: a name can be given to
// something else at any time, a descriptor cannot.
#pragma once
#include <sys/types.h>

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

// Who may change it, and when that last happened.
struct FileFacts {
  uid_t owner = 0;
  gid_t group = 0;
  mode_t mode = 0;
  uint64_t size_bytes = 0;
  int64_t modified_ns = 0;
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
  // Goes over to a copy in memory that nobody can change any more; identity and facts stay the file's. Call it before the
  // bytes are judged. Nothing on success, else open-failed.
  std::optional<Verdict> seal();
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }
  FileIdentity identity() const { return identity_; }
  const FileFacts& facts() const { return facts_; }
  int descriptor() const { return fd_; }

 private:
  int fd_ = -1;
  void* data_ = nullptr;
  size_t size_ = 0;
  FileIdentity identity_;
  FileFacts facts_;
};

// The identity of what the path leads to now; nothing when there is none.
std::optional<FileIdentity> identity_of(const std::string& path);

}  // namespace tenon::loader
