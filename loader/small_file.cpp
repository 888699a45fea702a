#include "loader/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace tenon::loader {

namespace fs = std::filesystem;

std::string cache_base(const char* setting, const Environment& env) {
  if (setting != nullptr) return std::strcmp(setting, "off") == 0 ? "" : setting;
  if (env.secure) return "";
  // The specification of the base folders says that a relative value is to be ignored.
  if (env.cache_home && env.cache_home->starts_with('/')) return *env.cache_home + "/tenon";
  if (env.home && env.home->starts_with('/')) return *env.home + "/.cache/tenon";
  return "";
}

bool own_folder(const std::string& folder, bool make) {
  if (folder.empty() || folder[0] != '/') return false;
  std::error_code error;
  if (make && !fs::exists(folder, error)) {
    fs::create_directories(fs::path(folder).parent_path(), error);
    mkdir(folder.c_str(), 0700);
  }
  struct stat info {};
  if (lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return false;
  return info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::string read_small(const std::string& path, size_t limit) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) return {};
  std::string text(limit + 1, '\0');
  const ssize_t n = read(fd, text.data(), text.size());
  close(fd);
  if (n < 0 || static_cast<size_t>(n) > limit) return {};
  text.resize(static_cast<size_t>(n));
  return text;
}

bool replace_small(const std::string& path, const std::string& text) {
  std::string beside = path + ".XXXXXX";
  const int fd = mkostemp(beside.data(), O_CLOEXEC);
  if (fd < 0) return false;
  const bool whole = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool placed = close(fd) == 0 && whole && rename(beside.c_str(), path.c_str()) == 0;
  if (!placed) unlink(beside.c_str());
  return placed;
}

std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

std::string short_hash(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

}  // namespace tenon::loader
