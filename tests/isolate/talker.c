/* The template backend with an open() that uses everything a host offers, and says what it got. */
#define tn_plugin_query template_query
#include "backends/null/plugin.c"
#undef tn_plugin_query

static void say(const tn_host* host, const char* format, const char* text, long long number) {
  char line[128];
  const int n = snprintf(line, sizeof line, format, text, number);
  host->log(host->ctx, TN_LOG_WARN, line, (uint32_t)n);
}
static void add(void* sum, int64_t begin, int64_t end, uint32_t worker) {
  for (int64_t i = begin; i < end; ++i) __atomic_fetch_add((int64_t*)sum, i, __ATOMIC_RELAXED);
}
static tn_status talk(const tn_host* host, tn_instance** out, tn_diag* diag) {
  const char* word = host->config(host->ctx, "talker.word");
  const char* absent = host->config(host->ctx, "talker.absent");
  int64_t sum = 0;
  void* block = host->alloc(host->ctx, 1000, 256);
  say(host, "talker: word %s, %lld", word ? word : "none", absent == NULL);
  host->parallel(host->ctx, 1000, 10, add, &sum);
  say(host, "talker: %s %lld", "sum", (long long)sum);
  say(host, "talker: %s %lld", "threads", (long long)host->threads(host->ctx));
  say(host, "talker: %s %lld", "cancelled", (long long)host->cancelled(host->ctx));
  say(host, "talker: %s %lld", "aligned", (long long)((uintptr_t)block % 256 == 0));
  host->free(host->ctx, block);
  return null_open(host, out, diag);
}

TN_EXPORT const tn_plugin* tn_plugin_query(uint32_t abi, const tn_host* host) {
  static tn_plugin table;
  const tn_plugin* given = template_query(abi, host);
  if (!given) return NULL;
  table = *given;
  table.open = talk;
  return &table;
}
