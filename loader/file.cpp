#include "loader/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace tenon::loader {
namespace {

Verdict from_errno(int error) {
  const Code code = error == ENOENT || error == ENOTDIR ? Code::NotFound : Code::Unreadable;
  return verdict(code, std::generic_category().message(error), error);
}

const char* kind(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR: return "a directory";
    case S_IFIFO: return "a pipe";
    case S_IFSOCK: return "a socket";
    default: return "a device";
  }
}

}  // namespace

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, size_);
  if (fd_ >= 0) close(fd_);
}

std::optional<Verdict> MappedFile::open(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return from_errno(errno);
  if (!S_ISREG(info.st_mode)) return verdict(Code::NotRegularFile, std::string("it is ") + kind(info.st_mode) + ", a regular file is wanted");
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) return from_errno(errno);
  // Asked again of what was really opened: the name may have been given to something else in between.
  if (fstat(fd_, &info) != 0) return from_errno(errno);
  if (!S_ISREG(info.st_mode)) return verdict(Code::NotRegularFile, std::string("it is ") + kind(info.st_mode) + ", a regular file is wanted");
  if (info.st_size == 0) return verdict(Code::EmptyFile, "0 bytes");
  void* data = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd_, 0);
  if (data == MAP_FAILED) return from_errno(errno);
  data_ = data;
  size_ = static_cast<size_t>(info.st_size);
  identity_ = {static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino)};
  facts_ = {info.st_uid, info.st_gid, info.st_mode, static_cast<uint64_t>(info.st_size),
            int64_t{info.st_mtim.tv_sec} * 1000000000 + info.st_mtim.tv_nsec};
  return std::nullopt;
}

std::optional<Verdict> MappedFile::seal() {
  const auto refuse = [] { return verdict(Code::OpenFailed, "no sealed copy: " + std::generic_category().message(errno), errno); };
  const int file = std::exchange(fd_, memfd_create("tenon-plugin", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd_ < 0) {
    fd_ = file;
    return refuse();
  }
  off_t at = 0;
  while (static_cast<size_t>(at) < size_ && sendfile(fd_, file, &at, size_ - static_cast<size_t>(at)) > 0) {}
  close(file);
  if (static_cast<size_t>(at) != size_) return verdict(Code::OpenFailed, "the file became shorter while it was copied");
  if (fcntl(fd_, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return refuse();
  void* data = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_, 0);
  if (data == MAP_FAILED) return refuse();
  munmap(std::exchange(data_, data), size_);
  return std::nullopt;
}

std::optional<FileIdentity> identity_of(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return FileIdentity{static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino)};
}

}  // namespace tenon::loader
