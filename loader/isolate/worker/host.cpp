#include "loader/isolate/worker/host.h"

#include <tenon/runtime.h>

#include <cstdlib>
#include <utility>

#include "loader/isolate/wire.h"

namespace tenon::loader::isolate {
namespace {

WorkerHost* host(void* ctx) { return static_cast<WorkerHost*>(ctx); }

void* allocate(void*, uint64_t bytes, uint64_t align) {
  if (align < 64) align = 64;
  if ((align & (align - 1)) != 0 || bytes > UINT64_MAX / 2) return nullptr;
  return std::aligned_alloc(align, (bytes + align - 1) / align * align + (bytes == 0 ? align : 0));
}
void release(void*, void* p) { std::free(p); }
uint64_t trace(void*, uint64_t, const char*) { return 0; }
// Whoever waits in the program asks the plugin again and again; nobody needs to be woken.
void progress(void*, tn_dev_timeline*, uint64_t) {}

}  // namespace

WorkerHost::WorkerHost(Channel& events, uint32_t threads) : events_(events), pool_(threads) {
  table_.size = sizeof table_;
  table_.abi = TN_ABI_CURRENT;
  table_.ctx = this;
  table_.log = log;
  table_.alloc = allocate;
  table_.free = release;
  table_.config = config;
  table_.threads = [](void* ctx) { return host(ctx)->pool_.size(); };
  table_.parallel = [](void* ctx, int64_t n, int64_t grain, tn_range_fn fn, void* arg) { host(ctx)->pool_.parallel(n, grain, fn, arg); };
  table_.cancelled = cancelled;
  table_.trace = trace;
  table_.progress = progress;
  table_.builder = tn_builder_table();
}

void WorkerHost::log(void* ctx, uint32_t level, const char* msg, uint32_t len) {
  Writer w;
  w.put(level);
  w.put_bytes(msg, len);
  std::lock_guard lock(host(ctx)->send_mutex_);
  host(ctx)->events_.send(kLog, w.bytes());
}

std::string WorkerHost::ask(uint32_t kind, const std::string& payload) {
  {
    std::lock_guard lock(send_mutex_);
    if (!events_.send(kind, payload)) return {};
  }
  std::unique_lock lock(answer_mutex_);
  answer_came_.wait(lock, [&] { return has_answer_; });
  has_answer_ = false;
  return std::move(answer_);
}

void WorkerHost::answered(const std::string& payload) {
  {
    std::lock_guard lock(answer_mutex_);
    answer_ = payload;
    has_answer_ = true;
  }
  answer_came_.notify_one();
}

const char* WorkerHost::config(void* ctx, const char* key) {
  WorkerHost* self = host(ctx);
  std::lock_guard lock(self->ask_mutex_);
  auto known = self->values_.find(key);
  if (known == self->values_.end()) {
    const std::string reply = self->ask(kAsk, key);
    std::string value;
    const bool set = !reply.empty() && Reader(reply).get_text(&value);
    known = self->values_.emplace(key, std::pair(set, value)).first;
  }
  return known->second.first ? known->second.second.c_str() : nullptr;
}

int32_t WorkerHost::cancelled(void* ctx) {
  std::lock_guard lock(host(ctx)->ask_mutex_);
  const std::string reply = host(ctx)->ask(kCancelled, {});
  return reply.empty() ? 0 : Reader(reply).get<int32_t>();
}

}  // namespace tenon::loader::isolate
