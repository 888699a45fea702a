#include "backends/gpu_common/kernel_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

namespace tenon::gpu {
namespace {

namespace fs = std::filesystem;

struct Head { char magic[8]; uint64_t key_bytes, binary_bytes, checksum; };
constexpr char kMagic[8] = {'T', 'N', 'K', 'E', 'R', 'N', '0', '1'};
constexpr uint64_t kLargest = uint64_t{256} << 20;
constexpr auto kLongestWait = std::chrono::seconds(60);  // for another process's compiler; then this one compiles too

uint64_t fnv(const std::string& text, uint64_t hash = 14695981039346656037u) {
  for (const unsigned char c : text) hash = (hash ^ c) * 1099511628211u;
  return hash;
}
uint64_t checksum(const std::string& key, const std::string& binary) { return fnv(binary, fnv(key)); }

class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600)) {}
  ~File() { if (fd_ >= 0) ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }
  bool all(void* data, size_t n) { return transfer(static_cast<char*>(data), n, [this](char* p, size_t k) { return ::read(fd_, p, k); }); }
  bool put(const void* data, size_t n) {
    return transfer(static_cast<char*>(const_cast<void*>(data)), n, [this](char* p, size_t k) { return ::write(fd_, p, k); });
  }

 private:
  template <class F>
  bool transfer(char* p, size_t n, F step) {
    while (n > 0) {
      const ssize_t done = step(p, n);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return false;
      p += done, n -= static_cast<size_t>(done);
    }
    return true;
  }
  const int fd_;
};

// Held while a key is compiled. Lock files are few and stay: taking one away while another process waits for it would let two in.
class Turn {
 public:
  explicit Turn(const std::string& path) : file_(path, O_CREAT | O_RDWR) {
    const auto end = std::chrono::steady_clock::now() + kLongestWait;
    for (auto nap = std::chrono::milliseconds(1); file_.fd() >= 0 && ::flock(file_.fd(), LOCK_EX | LOCK_NB) != 0; nap = std::min(nap * 2, std::chrono::milliseconds(20))) {
      if ((errno != EWOULDBLOCK && errno != EINTR) || std::chrono::steady_clock::now() > end) return;
      std::this_thread::sleep_for(nap);
    }
  }

 private:
  File file_;  // closing it lets go
};

}  // namespace

bool KernelStore::ready() const {
  if (folder_.empty()) return false;
  std::error_code ignored;
  fs::create_directories(fs::path(folder_).parent_path(), ignored);
  ::mkdir(folder_.c_str(), 0700);
  struct stat s;
  // Whoever can write here can have code run on the device: nobody but this user may.
  return ::lstat(folder_.c_str(), &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == ::geteuid() && (s.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::string KernelStore::path_of(const std::string& name, const std::string& key) const {
  char hash[40];
  std::snprintf(hash, sizeof hash, "%016llx%016llx", static_cast<unsigned long long>(fnv(key)), static_cast<unsigned long long>(fnv(key, 0x9E3779B97F4A7C15u)));
  std::string safe;
  for (const char c : name.substr(0, 80)) safe += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ? c : '_';
  return folder_ + "/" + safe + "-" + hash + ".kernel";
}

bool KernelStore::read(const std::string& path, const std::string& key, std::string* binary) const {
  File file(path, O_RDONLY);
  Head head;
  if (file.fd() < 0 || !file.all(&head, sizeof head) || std::memcmp(head.magic, kMagic, sizeof kMagic) != 0) return false;
  if (head.key_bytes != key.size() || head.binary_bytes > kLargest) return false;
  std::string stored(key.size(), '\0'), data(head.binary_bytes, '\0');
  char beyond;
  if (!file.all(stored.data(), stored.size()) || stored != key || !file.all(data.data(), data.size()) || file.all(&beyond, 1)) return false;
  if (checksum(key, data) != head.checksum) return false;
  ::futimens(file.fd(), nullptr);  // used now: trim() takes the oldest
  *binary = std::move(data);
  return true;
}

void KernelStore::write(const std::string& path, const std::string& key, const std::string& binary) const {
  static std::atomic<uint32_t> count{0};
  const std::string temporary = folder_ + "/." + std::to_string(::getpid()) + "-" + std::to_string(count.fetch_add(1)) + ".part";
  Head head{{}, key.size(), binary.size(), checksum(key, binary)};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  bool good = false;
  {
    File file(temporary, O_CREAT | O_EXCL | O_WRONLY);
    if (file.fd() < 0) return;
    good = file.put(&head, sizeof head) && file.put(key.data(), key.size()) && file.put(binary.data(), binary.size());
  }
  if (!good || ::rename(temporary.c_str(), path.c_str()) != 0) ::unlink(temporary.c_str());
}

void KernelStore::trim() const {
  struct Entry { fs::file_time_type used; uint64_t bytes; fs::path path; };
  std::vector<Entry> all;
  uint64_t total = 0;
  std::error_code e;
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (fs::directory_iterator it(folder_, e), end; !e && it != end; it.increment(e)) {
    std::error_code gone;
    const bool part = it->path().extension() == ".part";
    if (!part && it->path().extension() != ".kernel") continue;
    const Entry entry{it->last_write_time(gone), it->file_size(gone), it->path()};
    if (gone) continue;
    if (part && entry.used < long_ago) fs::remove(entry.path, gone);  // of a process that ended while it wrote
    if (!part) total += entry.bytes, all.push_back(entry);
  }
  if (total <= most_bytes_) return;
  std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : all) {
    if (total <= most_bytes_) break;
    fs::remove(entry.path, e);
    total -= entry.bytes;
  }
}

tn_status KernelStore::obtain(const std::string& name, const std::string& key, const Compile& compile, std::string* binary, tn_diag* diag) const {
  if (!ready()) return compile(binary, diag);
  const std::string path = path_of(name, key);
  if (read(path, key, binary)) return TN_OK;
  const Turn turn(folder_ + "/lock-" + std::to_string(fnv(key) % 61));
  if (read(path, key, binary)) return TN_OK;
  if (tn_status s = compile(binary, diag); s != TN_OK) return s;
  write(path, key, *binary);
  trim();
  return TN_OK;
}

void KernelStore::forget(const std::string& name, const std::string& key) const {
  if (ready()) ::unlink(path_of(name, key).c_str());
}

}  // namespace tenon::gpu
