#include "tests/doubles/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "tests/doubles/settings.h"

namespace tenon_double {
namespace {

constexpr uint64_t kPage = 4096, kFillLimit = uint64_t{4} << 20;
constexpr unsigned char kFresh = 0xFF, kBorder = 0xB7;

struct Mapping {
  Block block;
  char* start;        // a faulting page, then data pages, then a faulting page
  uint64_t map_bytes, data_begin, data_end;
};

struct Heap {
  std::mutex mutex;
  std::map<uint64_t, Mapping> blocks;
};
Heap& heap() {
  static Heap h;
  return h;
}

// Bytes between the data pages' ends and the block: of every block, they keep their pattern.
bool border_whole(const Mapping& m, std::string* where) {
  const auto check = [&](uint64_t from, uint64_t to, const char* side) {
    for (uint64_t a = from; a < to; ++a)
      if (*reinterpret_cast<const unsigned char*>(a) != kBorder) {
        const uint64_t away = a < m.block.base ? m.block.base - a : a - (m.block.base + m.block.bytes) + 1;
        *where = "byte " + std::to_string(away) + " " + side + " a block of " + std::to_string(m.block.bytes) + " bytes was written";
        return false;
      }
    return true;
  };
  const uint64_t before = std::max(m.data_begin, m.block.base - std::min<uint64_t>(m.block.base, 64));
  return check(before, m.block.base, "before") && check(m.block.base + m.block.bytes, m.data_end, "behind");
}

bool take_turn(uint64_t* countdown) { return *countdown != 0 && --*countdown == 0; }

}  // namespace

int allocate(int device, uint64_t bytes, bool pinned, uint64_t* out) {
  if (bytes == 0) return 1;
  Heap& h = heap();
  std::lock_guard lock(h.mutex);
  counters().allocations++;
  if (take_turn(&settings().oom_at)) return 2;
  uint64_t used = 0;
  for (const auto& [base, m] : h.blocks)
    if (m.block.device == device && !m.block.pinned) used += m.block.bytes;
  if (!pinned && used + bytes > settings().memory_bytes) return 2;
  const uint64_t align = std::max<uint64_t>(settings().align, 4);
  const uint64_t data = (bytes + align + kPage - 1) / kPage * kPage;
  void* start = mmap(nullptr, data + 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return 2;
  Mapping m{{}, static_cast<char*>(start), data + 2 * kPage, 0, 0};
  mprotect(m.start, kPage, PROT_NONE);
  mprotect(m.start + kPage + data, kPage, PROT_NONE);
  m.data_begin = reinterpret_cast<uint64_t>(m.start) + kPage, m.data_end = m.data_begin + data;
  m.block = {(m.data_end - bytes) / align * align, bytes, device, pinned};
  std::memset(reinterpret_cast<void*>(m.data_begin), kBorder, std::min(m.block.base - m.data_begin, kPage));
  std::memset(reinterpret_cast<void*>(m.block.base), kFresh, std::min(bytes, kFillLimit));
  std::memset(reinterpret_cast<void*>(m.block.base + bytes), kBorder, m.data_end - m.block.base - bytes);
  h.blocks.emplace(m.block.base, m);
  counters().blocks++, counters().bytes += static_cast<int64_t>(bytes);
  *out = m.block.base;
  return 0;
}

int release(uint64_t base, bool pinned) {
  Heap& h = heap();
  std::lock_guard lock(h.mutex);
  const auto found = h.blocks.find(base);
  if (found == h.blocks.end() || found->second.block.pinned != pinned) return 1;
  std::string where;
  const bool whole = border_whole(found->second, &where);
  if (!whole) std::fprintf(stderr, "[double] free: %s\n", where.c_str());
  counters().blocks--, counters().bytes -= static_cast<int64_t>(found->second.block.bytes);
  munmap(found->second.start, found->second.map_bytes);
  h.blocks.erase(found);
  return whole ? 0 : 719;
}

bool find(uint64_t address, uint64_t bytes, Block* out) {
  Heap& h = heap();
  std::lock_guard lock(h.mutex);
  auto after = h.blocks.upper_bound(address);
  if (after == h.blocks.begin()) return false;
  const Block& b = std::prev(after)->second.block;
  if (address + bytes > b.base + b.bytes) return false;
  *out = b;
  return true;
}

bool is_pinned(const void* address, uint64_t bytes) {
  Block b;
  return find(reinterpret_cast<uint64_t>(address), bytes, &b) && b.pinned;
}

uint64_t used_bytes(int device) {
  Heap& h = heap();
  std::lock_guard lock(h.mutex);
  uint64_t used = 0;
  for (const auto& [base, m] : h.blocks)
    if (m.block.device == device && !m.block.pinned) used += m.block.bytes;
  return used;
}

std::string describe(uint64_t address) {
  Heap& h = heap();
  std::lock_guard lock(h.mutex);
  for (const auto& [base, m] : h.blocks) {
    const auto start = reinterpret_cast<uint64_t>(m.start);
    if (address < start || address >= start + m.map_bytes) continue;
    if (address < m.block.base) return std::to_string(m.block.base - address) + " bytes before a block of " + std::to_string(m.block.bytes) + " bytes";
    return std::to_string(address - m.block.base - m.block.bytes) + " bytes behind a block of " + std::to_string(m.block.bytes) + " bytes";
  }
  return "no block is near";
}

bool borders_whole(std::string* where) {
  Heap& h = heap();
  std::lock_guard lock(h.mutex);
  return std::all_of(h.blocks.begin(), h.blocks.end(), [&](const auto& entry) { return border_whole(entry.second, where); });
}

}  // namespace tenon_double
