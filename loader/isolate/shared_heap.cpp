#include "loader/isolate/shared_heap.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>

#include "kernel/status.h"

namespace tenon::loader::isolate {
namespace {

constexpr uint64_t kUsualChunk = 32u << 20, kLeastPiece = 64, kPage = 4096;

uint64_t rounded(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

tn_status no_memory(uint64_t bytes, tn_diag* diag) {
  return kernel::fail(diag, TN_E_OOM, kernel::id(kernel::kMem, 2), "host memory is exhausted\nwhy: %llu bytes to share with a worker process: %s\ntry: free tensors or use a smaller batch", static_cast<unsigned long long>(bytes),
                      std::strerror(errno));
}

}  // namespace

SharedHeap::~SharedHeap() {
  for (auto& [first, chunk] : chunks_) munmap(chunk.host, chunk.bytes);
}

tn_status SharedHeap::add_chunk(uint64_t bytes, tn_diag* diag) {
  bytes = rounded(std::max(bytes, kUsualChunk), kPage);
  const int file = memfd_create("tenon-isolate", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    const tn_status s = no_memory(bytes, diag);
    if (file >= 0) close(file);
    return s;
  }
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  tn_status s = pages == MAP_FAILED ? no_memory(bytes, diag) : TN_OK;
  Writer w;
  w.put(bytes);
  std::string reply;
  if (s == TN_OK) s = worker_.call(nullptr, Call::Map, w, &reply, diag, file);
  close(file);
  if (s != TN_OK) {
    if (pages != MAP_FAILED) munmap(pages, bytes);
    return s;
  }
  Chunk chunk;
  chunk.host = static_cast<char*>(pages), chunk.bytes = bytes;
  chunk.remote = Reader(reply).get<uint64_t>();
  chunk.free[0] = bytes;
  chunks_.emplace(chunk.host, std::move(chunk));
  return TN_OK;
}

bool SharedHeap::cut(Chunk* chunk, uint64_t bytes, uint64_t align, SharedBlock* out) {
  for (auto it = chunk->free.begin(); it != chunk->free.end(); ++it) {
    const auto [at, room] = *it;
    const uint64_t first = rounded(at, align);
    if (first + bytes > at + room) continue;
    chunk->free.erase(it);
    if (first > at) chunk->free[at] = first - at;
    if (at + room > first + bytes) chunk->free[first + bytes] = at + room - first - bytes;
    chunk->used[first] = bytes;
    *out = {chunk->host + first, chunk->remote + first, bytes};
    return true;
  }
  return false;
}

tn_status SharedHeap::allocate(uint64_t bytes, uint64_t align, SharedBlock* out, tn_diag* diag) {
  if (bytes > UINT64_MAX / 4 || align > kPage) return errno = ENOMEM, no_memory(bytes, diag);
  bytes = rounded(std::max(bytes, uint64_t{1}), kLeastPiece);
  align = std::max(align, kLeastPiece);
  std::lock_guard lock(mutex_);
  for (auto& [first, chunk] : chunks_)
    if (cut(&chunk, bytes, align, out)) return TN_OK;
  if (tn_status s = add_chunk(bytes, diag)) return s;
  for (auto& [first, chunk] : chunks_)
    if (cut(&chunk, bytes, align, out)) return TN_OK;
  return no_memory(bytes, diag);
}

// Memory that nothing uses goes back to the system, but for what the next copies will want.
void SharedHeap::free(char* host) {
  if (host == nullptr) return;
  std::lock_guard lock(mutex_);
  auto chunk = chunks_.upper_bound(host);
  if (chunk == chunks_.begin()) return;
  Chunk& c = std::prev(chunk)->second;
  const auto used = c.used.find(static_cast<uint64_t>(host - c.host));
  if (used == c.used.end()) return;
  uint64_t at = used->first, bytes = used->second;
  c.used.erase(used);
  auto after = c.free.lower_bound(at);
  if (after != c.free.end() && after->first == at + bytes) bytes += after->second, after = c.free.erase(after);
  if (after != c.free.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == at) at = before->first, bytes += before->second, c.free.erase(before);
  }
  c.free[at] = bytes;
  if (!c.used.empty() || chunks_.size() == 1 || c.bytes <= 8 * kUsualChunk) return;
  Writer w;
  w.put(c.remote), w.put(c.bytes);
  std::string reply;
  worker_.call(nullptr, Call::Unmap, w, &reply, nullptr);
  munmap(c.host, c.bytes);
  chunks_.erase(std::prev(chunk));
}

uint64_t SharedHeap::remote_of(const void* host) const {
  const auto* p = static_cast<const char*>(host);
  std::lock_guard lock(mutex_);
  auto chunk = chunks_.upper_bound(p);
  if (p == nullptr || chunk == chunks_.begin()) return 0;
  const Chunk& c = std::prev(chunk)->second;
  const auto offset = static_cast<uint64_t>(p - c.host);
  return offset < c.bytes ? c.remote + offset : 0;
}

}  // namespace tenon::loader::isolate
