// kernel/host.cpp - the tn_host every plugin gets.
#include <cstdlib>
#include <cstring>

#include "kernel/runtime.h"

namespace tenon::kernel {
namespace {

HostContext* context(void* ctx) { return static_cast<HostContext*>(ctx); }
Runtime& runtime(void* ctx) { return *context(ctx)->runtime; }

void log(void* ctx, uint32_t level, const char* msg, uint32_t len) {
  const Hooks::Use hooks(runtime(ctx).hooks());
  if (hooks->log) hooks->log(hooks->ctx, level, msg, len);
}

// A header in front of each block carries its size, so that what a plugin holds can be counted.
constexpr uint64_t kHeader = 64;

void* alloc(void* ctx, uint64_t bytes, uint64_t align) {
  if (align < kHeader) align = kHeader;
  if ((align & (align - 1)) || bytes > UINT64_MAX / 2) return nullptr;
  const uint64_t total = (bytes + align + align - 1) / align * align;
  char* base = static_cast<char*>(std::aligned_alloc(align, total));
  if (!base) return nullptr;
  char* p = base + align;
  std::memcpy(p - 16, &bytes, 8);
  std::memcpy(p - 8, &align, 8);
  context(ctx)->live_allocs.fetch_add(1, std::memory_order_relaxed);
  context(ctx)->live_bytes.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  return p;
}

void free(void* ctx, void* p) {
  if (!p) return;
  uint64_t bytes, align;
  std::memcpy(&bytes, static_cast<char*>(p) - 16, 8);
  std::memcpy(&align, static_cast<char*>(p) - 8, 8);
  context(ctx)->live_allocs.fetch_sub(1, std::memory_order_relaxed);
  context(ctx)->live_bytes.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  std::free(static_cast<char*>(p) - align);
}

const char* config(void* ctx, const char* key) { return runtime(ctx).config(key); }
uint32_t threads(void* ctx) { return runtime(ctx).pool().size(); }
void parallel(void* ctx, int64_t n, int64_t grain, tn_range_fn fn, void* arg) { runtime(ctx).pool().parallel(n, grain, fn, arg); }

int32_t cancelled(void* ctx) {
  const Hooks::Use hooks(runtime(ctx).hooks());
  return hooks->cancelled ? hooks->cancelled(hooks->ctx) : 0;
}

uint64_t trace(void* ctx, uint64_t span, const char* name) {
  static thread_local uint64_t next = 0;
  Hooks& hooks = runtime(ctx).hooks();
  if (!hooks.wants(TN_EVENT_SPAN)) return 0;
  tn_event event{};
  event.size = sizeof event;
  event.kind = TN_EVENT_SPAN;
  event.plugin = context(ctx)->slot->entry.index;
  event.value = span ? span : ++next;
  event.name = name;
  (span ? event.end_ns : event.begin_ns) = now_ns();
  hooks.send(event);
  return span ? 0 : event.value;
}

// Waits block inside the plugin, so there is no waiter of the core's to wake.
void progress(void*, tn_dev_timeline*, uint64_t) {}

}  // namespace

void Runtime::fill_host(PluginSlot* slot) {
  slot->context.runtime = this;
  slot->context.slot = slot;
  tn_host& h = slot->host;
  h.size = sizeof h;
  h.abi = TN_ABI_CURRENT;
  h.ctx = &slot->context;
  h.log = log;
  h.alloc = alloc;
  h.free = free;
  h.config = tenon::kernel::config;
  h.threads = threads;
  h.parallel = parallel;
  h.cancelled = cancelled;
  h.trace = trace;
  h.progress = progress;
  h.builder = tn_builder_table();
}

}  // namespace tenon::kernel
