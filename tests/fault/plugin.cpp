// The fault kit: one plugin that misbehaves as it is told by two definitions (see CMakeLists.txt).
//
//   FAULT_AT   the stage: load constructor query open kernels devices supports launch close exit
//   FAULT_DO   what happens there: crash ill hang leave abort throw, or one of the lies at the bottom of this file
//
// Without a fault it is sound: one device "<name>:0" whose work is inline, memory from the C library, and one kernel that
// adds two dense f32 operands on its own device and on every CPU device.
#include <tenon/ops.h>
#include <tenon/plugin.h>

#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#ifndef FAULT_AT
#define FAULT_AT nowhere
#endif
#ifndef FAULT_DO
#define FAULT_DO nothing
#endif

TN_COLD({sizeof(tn_cold), 1, TN_ABI_CURRENT, TN_ABI_CURRENT, "test." FAULT_NAME, "1.0.0", FAULT_TARGET, {0, 0, 0, 0}, TN_COLD_UNLOADABLE, 0, {""}});

namespace {

constexpr const char* kAt = TEXT(FAULT_AT);
constexpr const char* kDo = TEXT(FAULT_DO);

constexpr bool same(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}
constexpr bool told(const char* what) { return same(kDo, what); }

// An address that the compiler cannot see through: what it knows to fault it may leave out.
void crash() {
  volatile uintptr_t nowhere = 8;
  *reinterpret_cast<volatile int*>(nowhere) = 1;
}

// Each stage passes here; the one that was chosen does not come back as it should.
void stage(const char* name) {
  if (!same(name, kAt)) return;
  if (told("crash")) crash();
  if (told("ill")) __builtin_trap();
  if (told("hang"))
    for (;;) pause();
  if (told("leave")) exit(0);
  if (told("abort")) abort();
  if (told("throw")) throw 7;
  if (told("rounding")) std::fesetround(FE_UPWARD);
}

}  // namespace

// Constructors and destructors of the file; and, for "load", code that the dynamic linker itself runs before them.
__attribute__((constructor)) static void construct() { stage("constructor"); }
static void drop_table();
static void call_late();
__attribute__((destructor)) static void destruct() {
  stage("exit");
  if (told("late_exit")) call_late();
  drop_table();
}
#if defined(FAULT_RESOLVER)
extern "C" {
static int answer() { return 42; }
int fault_resolved();
static int (*resolve())() {
  volatile uintptr_t nowhere = 8;  // nothing may be called here: symbols are not bound yet
  *reinterpret_cast<volatile int*>(nowhere) = 1;
  return answer;
}
int fault_resolved() __attribute__((ifunc("resolve")));  // called by open(): the linker must bind it
}
#endif

struct tn_device {};
struct tn_dev_queue {};
struct tn_instance {
  const tn_host* host;
  tn_device device;
  tn_dev_queue queue;
  uint32_t n_allocs;
};

namespace {

// ---- device ---------------------------------------------------------------------------------------------------------
tn_status devices(tn_instance*, tn_device_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag*) {
  stage("devices");
  *out_n = told("lie_count") ? 1000000 : 1;
  if (cap == 0) return TN_OK;
  tn_device_info info{};
  info.size = stride < sizeof info ? stride : static_cast<uint32_t>(sizeof info);
  info.kind = TN_KIND_CPU;
  info.flags = TN_DEVICE_INLINE | TN_DEVICE_EMULATED;
  if (told("lie_memory")) info.mem_total_bytes = 1, info.mem_free_bytes = UINT64_MAX;
  if (told("lie_uuid") || same(FAULT_NAME, "good")) {  // the liar claims to be the good one's hardware
    std::memset(info.uuid, 0x5A, sizeof info.uuid);
    info.flags |= TN_DEVICE_UUID_TRUSTED;
  }
  info.dtype_storage = info.dtype_compute = UINT64_C(1) << TN_F32;
  info.n_spaces = 1;
  if (told("lie_name")) std::memset(info.name, 'x', sizeof info.name);  // not terminated
  else std::strcpy(info.name, "fault kit");
  std::memcpy(out, &info, info.size);
  return TN_OK;
}
tn_status device_open(tn_instance* self, uint32_t, const tn_ext*, tn_device** out, tn_diag*) { return *out = &self->device, TN_OK; }
void device_close(tn_device*) {}
tn_status spaces(tn_device*, tn_space_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag*) {
  *out_n = 1;
  if (cap == 0) return TN_OK;
  tn_space_info info{};
  info.size = stride < sizeof info ? stride : static_cast<uint32_t>(sizeof info);
  info.kind = TN_SPACE_PAGEABLE;
  info.flags = TN_SPACE_HOST_VISIBLE | TN_SPACE_COHERENT;
  info.align_bytes = 64;
  info.max_alloc_bytes = info.budget_bytes = UINT64_C(1) << 30;
  std::memcpy(out, &info, info.size);
  return TN_OK;
}
tn_status allocate(tn_device* device, uint32_t space, uint64_t bytes, uint64_t, tn_buffer* out, tn_diag* diag) {
  auto* self = reinterpret_cast<tn_instance*>(reinterpret_cast<char*>(device) - offsetof(tn_instance, device));
  const char* nth = self->host->config(self->host->ctx, "fault.nth");
  const uint32_t fails = told("fail_alloc") ? (nth != nullptr ? static_cast<uint32_t>(std::atoi(nth)) : 1) : 0;
  void* p = nullptr;
  if (++self->n_allocs == fails || posix_memalign(&p, 64, bytes < 64 ? 64 : bytes) != 0) {
    if (diag != nullptr) diag->status = TN_E_OOM, std::strcpy(diag->msg, "alloc: the device has no memory left"), diag->len = static_cast<uint32_t>(std::strlen(diag->msg));
    return TN_E_OOM;
  }
  const auto address = reinterpret_cast<uint64_t>(p);
  *out = {address, address, bytes, p, space, 0};
  return TN_OK;
}
void release(tn_device*, const tn_buffer* buffer) { std::free(buffer->host); }
tn_status copy(tn_dev_queue*, const tn_view* to, const tn_view* from, tn_diag*) { return std::memmove(to->host, from->host, to->bytes), TN_OK; }
tn_status queue_open(tn_device* device, uint32_t, int32_t, tn_dev_queue** out, tn_diag*) {
  *out = &reinterpret_cast<tn_instance*>(reinterpret_cast<char*>(device) - offsetof(tn_instance, device))->queue;
  return TN_OK;
}
void queue_close(tn_dev_queue*) {}

// ---- kernel: y = a + b ----------------------------------------------------------------------------------------------
bool is_add(const tn_op* op) {
  for (uint32_t i = 0; i < op->n_attr; ++i) {
    if (op->attr[i].key != TN_KEY_PROGRAM) continue;
    const auto* p = static_cast<const tn_program*>(op->attr[i].v.p);
    return p->n_inst == 3 && p->inst[0].op == TN_OP_INPUT && p->inst[1].op == TN_OP_INPUT && p->inst[2].op == TN_OP_ADD && p->inst[2].a + p->inst[2].b == 1;
  }
  return false;
}
struct Plan {
  tn_kernel_plan head;
  int64_t n;
};
tn_status launch(const tn_kernel_plan* plan, const tn_launch* call) {
  stage("launch");
  const int64_t n = reinterpret_cast<const Plan*>(plan)->n + (told("overrun") ? 1 : 0);
  const auto *a = static_cast<const float*>(call->views[0].host), *b = static_cast<const float*>(call->views[1].host);
  auto* y = static_cast<float*>(call->views[2].host);
  for (int64_t i = 0; i < n; ++i) y[i] = told("overrun") ? 0 : a[i] + b[i];
  return TN_OK;
}
tn_status supports(tn_instance*, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag*) {
  stage("supports");
  if (!is_add(op) && !told("lie_support")) return TN_E_UNSUPPORTED;
  if (told("lie_cost")) out->est_ns = 1e-6;
  if (told("lie_support")) out->est_ns = 1e-6;
  return TN_OK;
}
tn_status prepare(tn_instance*, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag*) {
  if (told("lie_support") || !is_add(op)) return TN_E_UNSUPPORTED;
  auto* plan = new Plan{};
  plan->head.launch = launch;
  plan->head.n_views = 3;
  plan->n = 1;
  for (uint8_t d = 0; d < op->type[0].rank; ++d) plan->n *= op->type[0].dim[d];
  *out = &plan->head;
  return TN_OK;
}
void retire(tn_instance*, const tn_device_ref*, const tn_kernel_plan* plan) { delete reinterpret_cast<const Plan*>(plan); }

constexpr tn_constraint kNeeds[] = {{TN_ANY_OPERAND, TN_NEED_DEVICE_KIND, TN_KIND_CPU, 0, 0, 0}, {TN_ANY_OPERAND, TN_NEED_DTYPE, 0, UINT64_C(1) << TN_F32, 0, 0},
                                    {TN_ANY_OPERAND, TN_NEED_CONTIGUOUS, 0, 0, 0, 0}, {TN_ANY_OPERAND, TN_NEED_STATIC, 0, 0, 0, 0}};
tn_status kernels(tn_instance*, const tn_kernel_info** out, uint32_t* out_stride, uint32_t* out_n, tn_diag*) {
  stage("kernels");
  static tn_kernel_info row{};
  row.size = sizeof row;
  row.flags = TN_KERNEL_DETERMINISTIC;
  row.name = FAULT_NAME ".add";
  row.op_id = TN_OPID_POINTWISE;
  row.op_min = 1, row.op_max = UINT16_MAX;
  row.tier = TN_TIER_NATIVE;
  row.cons = kNeeds, row.n_cons = 4;
  row.supports = supports, row.prepare = prepare, row.retire = retire;
  if (told("lie_row")) row.prepare = nullptr;
  *out = &row;
  *out_stride = told("lie_stride") ? 4 : static_cast<uint32_t>(sizeof row);
  *out_n = 1;
  return TN_OK;
}

const tn_host* late_host = nullptr;  // kept beyond close, against the contract

// ---- lifecycle ------------------------------------------------------------------------------------------------------
tn_status open(const tn_host* host, tn_instance** out, tn_diag* diag) {
  stage("open");
#if defined(FAULT_RESOLVER)
  if (fault_resolved() != 42) return TN_E_BUG;
#endif
  if (told("fail_open")) {
    if (diag != nullptr) std::strcpy(diag->msg, "the firmware does not answer");
    return TN_E_FAILED;
  }
  if (told("leak"))
    for (int i = 0; i < 3; ++i) host->alloc(host->ctx, 1000, 64);
  static tn_instance instance;
  instance = {};
  instance.host = late_host = host;
  *out = &instance;
  return TN_OK;
}
tn_status quiesce(tn_instance*, uint64_t, uint32_t* out_live, tn_diag*) {
  *out_live = told("lie_live") ? 1 : 0;
  return TN_OK;
}
void close(tn_instance*) { stage("close"); }

// The table stands at the end of a page that is followed by one nobody may read.
char* pages = nullptr;
tn_plugin* guarded_table(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  pages = static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(pages + page, page, PROT_NONE);
  return reinterpret_cast<tn_plugin*>(pages + page - bytes);
}

size_t table_bytes() {
  if (told("table_0")) return 8;
  if (told("table_4")) return 8;
  if (told("table_short")) return offsetof(tn_plugin, close);
  if (told("table_old")) return offsetof(tn_plugin, iface);
  return sizeof(tn_plugin);
}

uint32_t table_says() {
  if (told("table_0")) return 0;
  if (told("table_4")) return 4;
  if (told("table_huge")) return UINT32_MAX;
  return static_cast<uint32_t>(table_bytes());
}

}  // namespace

// A static object that tidies up with the host's functions when the file is unmapped, or the process ends.
static void call_late() {
  if (late_host == nullptr) return;
  late_host->log(late_host->ctx, TN_LOG_WARN, "late", 4);
  late_host->free(late_host->ctx, late_host->alloc(late_host->ctx, 100, 64));
}

static void drop_table() {
  if (pages != nullptr) munmap(pages, 2 * static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

TN_EXPORT const tn_plugin* tn_plugin_query(uint32_t abi, const tn_host*) {
  stage("query");
  if (told("null_table")) return nullptr;
  tn_plugin t{};
  t.size = table_says();
  t.abi = told("lie_abi") ? abi + 1 : abi;
  t.open = open, t.quiesce = quiesce, t.close = close;
  t.devices = devices, t.device_open = device_open, t.device_close = device_close, t.spaces = spaces;
  t.alloc = allocate, t.free = release, t.copy = copy, t.queue_open = queue_open, t.queue_close = queue_close;
  if (told("half_group")) t.copy = nullptr;
  t.kernels = kernels;
  static tn_plugin* table = nullptr;
  if (table == nullptr) table = guarded_table(table_bytes());
  std::memcpy(static_cast<void*>(table), &t, table_bytes());
  return table;
}
