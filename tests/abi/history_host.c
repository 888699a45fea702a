/* The smallest host that keeps the contract, in plain C; compiled with the headers of every version of the history.
 *
 *     history_host MIN MAX PLUGIN      ranges as numbers; prints "ok A.B", or why not
 *
 * It reads the plugin's range from the file, asks for the highest common version, copies the table to its own size, takes
 * the kernels by their stride and runs `neg`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ops.h>
#include <tenon/plugin.h>

static int fail(const char* what) {
  printf("%s\n", what);
  return 1;
}
static const char* text(uint32_t abi, char* out) {
  sprintf(out, "%u.%u", abi >> 16, abi & 0xFFFF);
  return out;
}

/* The record's range: its place is behind the only "Tenon.abi" of the file; the first four numbers never move. */
static int read_range(const char* path, uint32_t* min, uint32_t* max) {
  static char bytes[1 << 20];
  FILE* file = fopen(path, "rb");
  size_t n = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  char* at = n ? memmem(bytes, n, TN_NOTE_NAME "\0\0\0", 12) : NULL;
  if (file) fclose(file);
  if (!at) return 0;
  memcpy(min, at + 12 + offsetof(tn_cold, abi_min), 4);
  memcpy(max, at + 12 + offsetof(tn_cold, abi_max), 4);
  return 1;
}

static void* host_alloc(void* ctx, uint64_t bytes, uint64_t align) { ++*(int*)ctx; (void)align; return malloc(bytes); }
static void host_free(void* ctx, void* p) { --*(int*)ctx; free(p); }
static void host_log(void* ctx, uint32_t level, const char* msg, uint32_t len) { (void)ctx, (void)level, (void)msg, (void)len; }
static const char* host_config(void* ctx, const char* key) { (void)ctx, (void)key; return NULL; }
static uint32_t host_threads(void* ctx) { (void)ctx; return 1; }
static void host_parallel(void* ctx, int64_t n, int64_t grain, tn_range_fn fn, void* arg) { (void)ctx, (void)grain; fn(arg, 0, n, 0); }
static int32_t host_cancelled(void* ctx) { (void)ctx; return 0; }
static uint64_t host_trace(void* ctx, uint64_t span, const char* name) { (void)ctx, (void)span, (void)name; return 0; }

static int run_neg(const tn_plugin* t, tn_instance* self) {
  const tn_kernel_info* row = NULL;
  uint32_t stride = 0, n = 0;
  if (!t->kernels || t->kernels(self, &row, &stride, &n, NULL) != TN_OK) return fail("kernels failed");
  for (uint32_t i = 0; i < n; ++i, row = (const tn_kernel_info*)((const char*)row + stride)) {
    const float x[3] = {1, -2, 3};
    float y[3] = {0, 0, 0};
    tn_type types[2];
    tn_op op;
    tn_device_ref ref;
    tn_device_info info;
    const tn_kernel_plan* plan = NULL;
    const tn_view views[2] = {{0, 0, sizeof x, (void*)x}, {0, 0, sizeof y, y}};
    tn_launch call;
    if (row->op_id != TN_OPID_NEG) continue;
    memset(types, 0, sizeof types), memset(&op, 0, sizeof op), memset(&ref, 0, sizeof ref), memset(&info, 0, sizeof info), memset(&call, 0, sizeof call);
    types[0].dtype = TN_F32, types[0].rank = 1, types[0].dim[0] = 3, types[0].stride[0] = 1;
    types[1] = types[0];
    op.size = sizeof op, op.op_id = TN_OPID_NEG, op.op_version = 1, op.n_in = 1, op.n_out = 1, op.type = types;
    info.size = sizeof info, info.kind = TN_KIND_CPU;
    ref.size = sizeof ref, ref.kind = TN_KIND_CPU, ref.info = &info;
    if (row->prepare(self, &ref, &op, &plan, NULL) != TN_OK) return fail("prepare failed");
    call.views = views, call.n_views = 2;
    if (plan->launch(plan, &call) != TN_OK) return fail("launch failed");
    row->retire(self, &ref, plan);
    return y[0] == -1 && y[1] == 2 && y[2] == -3 ? 0 : fail("wrong result");
  }
  return fail("no kernel for neg");
}

int main(int argc, char** argv) {
  uint32_t min = (uint32_t)strtoul(argv[1], NULL, 0), max = (uint32_t)strtoul(argv[2], NULL, 0), their_min, their_max, abi, live = 9;
  char a[16], b[16], c[16], d[16];
  int allocations = 0;
  tn_host host;
  tn_plugin t;
  tn_instance* self = NULL;
  if (argc != 4 || !read_range(argv[3], &their_min, &their_max)) return fail("no record");
  abi = max < their_max ? max : their_max;
  if (abi < min || abi < their_min) {
    printf("abi-range plugin [%s, %s], host [%s, %s]\n", text(their_min, a), text(their_max, b), text(min, c), text(max, d));
    return 0;
  }
  memset(&host, 0, sizeof host);
  host.size = sizeof host, host.abi = abi, host.ctx = &allocations;
  host.log = host_log, host.alloc = host_alloc, host.free = host_free, host.config = host_config, host.threads = host_threads;
  host.parallel = host_parallel, host.cancelled = host_cancelled, host.trace = host_trace;
#if defined(HISTORY_LATER)
  host.tn_later_[0] = UINT64_C(0x1A7E12);
#endif
  void* library = dlopen(argv[3], RTLD_NOW | RTLD_LOCAL);
  tn_plugin_query_fn query = NULL;
  if (!library) return fail(dlerror());
  *(void**)&query = dlsym(library, "tn_plugin_query");
  const tn_plugin* given = query ? query(abi, &host) : NULL;
  if (!given || given->abi != abi) return fail("no table for the version");
  memset(&t, 0, sizeof t);
  memcpy(&t, given, given->size < sizeof t ? given->size : sizeof t);
#if defined(HISTORY_LATER)
  if (given->size < sizeof t && t.tn_later_[0] != 0) return fail("a field that is not there is set");
#endif
  if (t.open(&host, &self, NULL) != TN_OK) return fail("open failed");
  if (run_neg(&t, self) != 0) return 1;
  if (t.quiesce(self, 0, &live, NULL) != TN_OK || live != 0) return fail("something lives on");
  t.close(self);
  if (allocations != 0) return fail("memory was kept");
  dlclose(library);
  printf("ok %s\n", text(abi, a));
  return 0;
}
