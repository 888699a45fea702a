// tenon/io/file.hpp - reading files by position, and replacing files so that a crash never leaves half of one.
//
//   auto file = tenon::io::AtomicFile::create("model.bin");
//   if (file) file->write(bytes.data(), bytes.size());
//   if (file && file->commit().ok()) ...               // now, and only now, model.bin is the new content
//
// Errors: TN-FILE-001 missing, 002 no permission, 003 not a regular file, 004 read failed or file shrank,
//         005 larger than a limit, 006 cannot create or write, 007 no space left, 008 published but not synced.
#pragma once
#include <tenon/io/status.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon::io {

// A regular file opened for reading. Owns its descriptor; movable. read_at uses pread, so any thread may read and a
// forked child does not disturb its parent.
class File {
 public:
  // follow_links = false refuses a path whose last part is a symbolic link (checkpoints from strangers).
  static Result<File> open(const std::string& path, bool follow_links = true);
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::string& path() const { return path_; }
  uint64_t size_bytes() const { return size_; }  // at the time of opening
  int descriptor() const { return fd_; }         // borrowed
  // Fills all of `out`; a file that became shorter in the meantime is TN-FILE-004. Blocks.
  Status read_at(uint64_t offset_bytes, void* out, size_t count_bytes) const;

 private:
  File(int fd, std::string path, uint64_t size) : fd_(fd), path_(std::move(path)), size_(size) {}
  int fd_ = -1;
  std::string path_;
  uint64_t size_ = 0;
};

// A whole file as bytes. Larger than limit_bytes: TN-FILE-005, before anything is allocated.
Result<std::string> read_file(const std::string& path, uint64_t limit_bytes, bool follow_links = true);

// A new content for `path`, written to a hidden file beside it. commit() syncs that file, renames it over `path` and syncs
// the folder; destruction without commit removes it. What a killed process left behind is removed by the next create()
// for the same path (a lock tells dead from living writers). A symbolic link at `path` is itself replaced.
// One thread at a time. Blocks.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  // Asks the file system for room now, so that a full disk is known before the work. Not all file systems can: then OK.
  Status reserve(uint64_t size_bytes);
  Status write(const void* data, size_t count_bytes);
  uint64_t written_bytes() const { return written_; }
  // At most once. On failure `path` still has its old content, except TN-FILE-008: renamed, folder not synced.
  Status commit();

 private:
  AtomicFile(int fd, std::string path, std::string temporary)
      : fd_(fd), path_(std::move(path)), temporary_(std::move(temporary)) {}
  void discard();
  int fd_ = -1;
  std::string path_, temporary_;
  uint64_t written_ = 0;
};

Status write_file(const std::string& path, const std::string& content);  // AtomicFile in one call
Status sync_directory(const std::string& path);                          // makes names in it durable
// The Status for errno of an operation on a path: `doing` is "open", "write", ...
Status errno_status(const std::string& path, const char* doing, int error);

}  // namespace tenon::io
