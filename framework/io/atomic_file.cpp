// Replacing a file so that every moment shows either the old or the new content: write beside, sync, rename, sync folder.
#include <tenon/io/file.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace tenon::io {
namespace {

constexpr const char* kSuffix = ".tenon-tmp";

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// ".model.bin.<pid>-<n>.tenon-tmp": hidden, in the same folder so that rename stays within one file system.
std::string temporary_prefix(const std::string& path) { return "." + name_of(path) + "."; }

bool lock(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB) == 0; }

// A temporary whose lock can be had belongs to a writer that died.
void remove_leftover(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return;
  if (lock(fd)) ::unlink(path.c_str());
  ::close(fd);
}

void remove_leftovers(const std::string& path) {
  const std::string folder = folder_of(path), prefix = temporary_prefix(path), suffix = kSuffix;
  DIR* directory = ::opendir(folder.c_str());
  if (directory == nullptr) return;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name.size() > prefix.size() + suffix.size() && name.starts_with(prefix) && name.ends_with(suffix))
      remove_leftover(folder + "/" + name);
  }
  ::closedir(directory);
}

// -1 and errno, or a locked descriptor of a fresh file.
int open_temporary(const std::string& path, std::string* temporary) {
  static std::atomic<uint32_t> counter{0};  // only makes names differ
  for (int attempt = 0; attempt < 100; ++attempt) {
    *temporary = folder_of(path) + "/" + temporary_prefix(path) + std::to_string(::getpid()) + "-" +
                 std::to_string(counter.fetch_add(1)) + kSuffix;
    const int fd = ::open(temporary->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) return -1;
    struct stat info {};
    // Between open and lock another writer may have taken it for a leftover: then try again.
    if (lock(fd) && ::fstat(fd, &info) == 0 && info.st_nlink == 1) return fd;
    ::close(fd);
  }
  errno = EBUSY;
  return -1;
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  if (path.find('\0') != std::string::npos || name_of(path).empty())
    return Status{file_error(6), quote(path) + ": cannot create", "the path has no file name or holds a NUL byte", "give a file name", ""};
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    return Status{file_error(3), path + ": not a regular file", "it is a directory", "give a file name inside it", path};
  remove_leftovers(path);
  std::string temporary;
  const int fd = open_temporary(path, &temporary);
  if (fd < 0) return errno_status(path, "create", errno);
  return AtomicFile(fd, path, temporary);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : fd_(other.fd_), path_(std::move(other.path_)), temporary_(std::move(other.temporary_)), written_(other.written_) {
  other.fd_ = -1;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (fd_ < 0) return;
  ::unlink(temporary_.c_str());
  ::close(fd_);
  fd_ = -1;
}

Status AtomicFile::reserve(uint64_t size) {
  if (size == 0) return {};
  if (size > static_cast<uint64_t>(INT64_MAX)) return errno_status(path_, "reserve", EFBIG);
  if (::fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size)) == 0) return {};
  if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) return errno_status(path_, "reserve", errno);
  return {};
}

Status AtomicFile::write(const void* data, size_t count) {
  const char* from = static_cast<const char*>(data);
  while (count > 0) {
    const ssize_t n = ::write(fd_, from, count);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_status(path_, "write", errno);
    from += n, count -= static_cast<size_t>(n), written_ += static_cast<uint64_t>(n);
  }
  return {};
}

Status AtomicFile::commit() {
  if (::fsync(fd_) != 0) return errno_status(path_, "sync", errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return errno_status(path_, "rename", errno);
  const int fd = fd_;
  fd_ = -1;  // from here on the name belongs to the new content
  ::close(fd);
  Status synced = sync_directory(folder_of(path_));
  if (synced.ok()) return {};
  return {file_error(8), path_ + ": written, but its folder could not be synced", synced.why,
          "check the disk; a power cut now may bring back the old content", path_};
}

Status write_file(const std::string& path, const std::string& content) {
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file) return file.status();
  Status status = file->write(content.data(), content.size());
  return status.ok() ? file->commit() : status;
}

Status sync_directory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno_status(path, "open", errno);
  // EINVAL: this file system has no such notion; there is nothing more to ask of it.
  const int failed = ::fsync(fd) != 0 && errno != EINVAL ? errno : 0;
  ::close(fd);
  return failed ? errno_status(path, "sync", failed) : Status{};
}

}  // namespace tenon::io
