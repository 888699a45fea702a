#include "loader/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

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

struct Descriptor {
  int fd = -1;
  ~Descriptor() { if (fd >= 0) close(fd); }
};

}  // namespace

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, size_);
}

std::optional<Verdict> MappedFile::open(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return from_errno(errno);
  if (!S_ISREG(info.st_mode)) return verdict(Code::NotRegularFile, std::string("it is ") + kind(info.st_mode) + ", a regular file is wanted");
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return from_errno(errno);
  // Asked again of what was really opened: the name may have been given to something else in between.
  if (fstat(file.fd, &info) != 0) return from_errno(errno);
  if (!S_ISREG(info.st_mode)) return verdict(Code::NotRegularFile, std::string("it is ") + kind(info.st_mode) + ", a regular file is wanted");
  if (info.st_size == 0) return verdict(Code::EmptyFile, "0 bytes");
  void* data = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) return from_errno(errno);
  data_ = data;
  size_ = static_cast<size_t>(info.st_size);
  identity_ = {static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino)};
  return std::nullopt;
}

}  // namespace tenon::loader
