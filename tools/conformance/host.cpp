#include "tools/conformance/host.h"

#include <tenon/runtime.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace tenon::conformance {
namespace {

constexpr uint64_t kMagic = 0x7E4041C0FFEE0001u;
constexpr unsigned char kFence = 0xFD;
constexpr uint64_t kFenceBytes = 32;

// In front of each block, at the end of the padding that alignment asks for.
struct Head {
  uint64_t magic, bytes;
  void* base;
};

}  // namespace

Host::Host(std::map<std::string, std::string> config, uint32_t threads) : config_(std::move(config)), threads_(threads) {
  table_.size = sizeof table_;
  table_.abi = TN_ABI_CURRENT;
  table_.ctx = this;
  table_.log = [](void*, uint32_t, const char*, uint32_t) {};
  table_.alloc = alloc;
  table_.free = release;
  table_.config = [](void* ctx, const char* key) -> const char* {
    const auto& config = static_cast<Host*>(ctx)->config_;
    const auto at = config.find(key);
    return at == config.end() ? nullptr : at->second.c_str();
  };
  table_.threads = [](void* ctx) { return static_cast<Host*>(ctx)->threads_; };
  table_.parallel = parallel;
  table_.cancelled = [](void*) -> int32_t { return 0; };
  table_.trace = [](void*, uint64_t, const char*) -> uint64_t { return 0; };
  table_.progress = [](void*, tn_dev_timeline*, uint64_t) {};
  table_.builder = tn_builder_table();
}

void* Host::alloc(void* ctx, uint64_t bytes, uint64_t align) {
  Host* self = static_cast<Host*>(ctx);
  self->allocations_.fetch_add(1);
  if (self->fail_in_.load() == 0) return nullptr;
  if (self->fail_in_.load() > 0) self->fail_in_.fetch_sub(1);
  align = std::max<uint64_t>(align, 64);
  if ((align & (align - 1)) != 0 || bytes > UINT64_MAX / 4) return nullptr;
  void* base = nullptr;
  if (posix_memalign(&base, align, align + bytes + kFenceBytes) != 0) return nullptr;
  char* p = static_cast<char*>(base) + align;
  const Head head{kMagic, bytes, base};
  std::memcpy(p - sizeof head, &head, sizeof head);
  std::memset(p, 0xA5, bytes);  // nobody may count on zeros
  std::memset(p + bytes, kFence, kFenceBytes);
  self->live_blocks_.fetch_add(1);
  return p;
}

void Host::release(void* ctx, void* p) {
  if (p == nullptr) return;
  Host* self = static_cast<Host*>(ctx);
  Head head;
  std::memcpy(&head, static_cast<char*>(p) - sizeof head, sizeof head);
  if (head.magic != kMagic) return self->note("host->free got a block that host->alloc did not give, or that was freed before");
  const unsigned char* fence = static_cast<unsigned char*>(p) + head.bytes;
  if (std::any_of(fence, fence + kFenceBytes, [](unsigned char c) { return c != kFence; }))
    self->note("bytes behind a block of " + std::to_string(head.bytes) + " bytes of the host were written");
  head.magic = 0;
  std::memcpy(static_cast<char*>(p) - sizeof head, &head, sizeof head);
  self->live_blocks_.fetch_sub(1);
  std::free(head.base);
}

// Real threads for what is large, several pieces on this thread for what is not: workers are numbered in both.
void Host::parallel(void* ctx, int64_t n, int64_t grain, tn_range_fn fn, void* arg) {
  const auto threads = static_cast<int64_t>(static_cast<Host*>(ctx)->threads_);
  const int64_t pieces = std::clamp<int64_t>(n / std::max<int64_t>(grain, 1), 1, threads);
  std::vector<std::thread> others;
  for (int64_t i = 1; i < pieces; ++i)
    others.emplace_back([=] { fn(arg, n * i / pieces, n * (i + 1) / pieces, static_cast<uint32_t>(i)); });
  if (n > 0) fn(arg, 0, n / pieces, 0);
  for (std::thread& t : others) t.join();
}

void Host::note(const std::string& fault) {
  const std::lock_guard lock(mutex_);
  faults_.push_back(fault);
}

std::vector<std::string> Host::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

}  // namespace tenon::conformance
