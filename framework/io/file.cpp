#include <tenon/io/file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tenon::io {
namespace {

Status not_regular(const std::string& path, mode_t mode) {
  const char* kind = S_ISDIR(mode) ? "a directory" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
  return {file_error(3), path + ": not a regular file", std::string("it is ") + kind, "name a file", path};
}

}  // namespace

Status errno_status(const std::string& path, const char* doing, int error) {
  const std::string reason = std::string(doing) + " failed: " + std::strerror(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return {file_error(1), path + ": no such file", reason, "check the path; the current directory decides what a relative one means", path};
    case EACCES:
    case EPERM:
      return {file_error(2), path + ": no permission", reason, "run `ls -l` on it and change its mode or owner", path};
    case ELOOP:
      return {file_error(3), path + ": not a regular file", "it is a symbolic link, which is not followed here", "put the file itself there", path};
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return {file_error(7), path + ": no space left", reason, "free some space or choose another disk", path};
    default:
      return {file_error(std::strcmp(doing, "read") == 0 || std::strcmp(doing, "open") == 0 ? 4 : 6), path + ": " + doing + " failed",
              reason, "check the disk and the file system (dmesg)", path};
  }
}

Result<File> File::open(const std::string& path, bool follow_links) {
  if (path.find('\0') != std::string::npos)
    return Status{file_error(1), quote(path) + ": no such file", "the path holds a NUL byte", "check the path", ""};
  // O_NONBLOCK: a pipe without a writer must give an error, not hang.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow_links ? 0 : O_NOFOLLOW));
  if (fd < 0) return errno_status(path, "open", errno);
  File file(fd, path, 0);
  struct stat info {};
  if (::fstat(fd, &info) != 0) return errno_status(path, "read", errno);
  if (!S_ISREG(info.st_mode)) return not_regular(path, info.st_mode);
  file.size_ = static_cast<uint64_t>(info.st_size);
  return file;
}

File::File(File&& other) noexcept : fd_(other.fd_), path_(std::move(other.path_)), size_(other.size_) { other.fd_ = -1; }

File& File::operator=(File&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(size_, other.size_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

Status File::read_at(uint64_t offset, void* out, size_t count) const {
  char* to = static_cast<char*>(out);
  while (count > 0) {
    const ssize_t n = ::pread(fd_, to, count, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_status(path_, "read", errno);
    if (n == 0)
      return {file_error(4), path_ + ": the file ends early",
              "byte " + std::to_string(offset) + " was wanted; it had " + std::to_string(size_) + " bytes when opened",
              "do not change the file while it is read", path_};
    to += n, offset += static_cast<uint64_t>(n), count -= static_cast<size_t>(n);
  }
  return {};
}

Result<std::string> read_file(const std::string& path, uint64_t limit, bool follow_links) {
  Result<File> file = File::open(path, follow_links);
  if (!file) return file.status();
  if (file->size_bytes() > limit)
    return Status{file_error(5), path + ": file too large",
                  "it has " + std::to_string(file->size_bytes()) + " bytes; at most " + std::to_string(limit) + " are read here",
                  "check that this is the right file", path};
  std::string content(file->size_bytes(), '\0');
  Status status = file->read_at(0, content.data(), content.size());
  if (!status.ok()) return status;
  return content;
}

}  // namespace tenon::io
