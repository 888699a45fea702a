/* A kernel pack in plain C, written against the first version of the headers: kernels for `abs` and `neg` on dense f32.
 * It is compiled with the headers of every version of the history. HISTORY_MIN and HISTORY_MAX are the range its record
 * states, HISTORY_LATER says that the structs have grown a field `tn_later_` at their end. */
#include <stdlib.h>
#include <string.h>
#include <tenon/ops.h>
#include <tenon/plugin.h>

#if defined(__aarch64__)
#define TARGET "aarch64-linux-gnu"
#else
#define TARGET "x86_64-linux-gnu"
#endif
TN_COLD({sizeof(tn_cold), 1, HISTORY_MIN, HISTORY_MAX, "test.history", "1.0.0", TARGET, {0, 0, 0, 0}, TN_COLD_UNLOADABLE | TN_COLD_PACK_ONLY, 0, {""}});

struct tn_instance { const tn_host* host; uint32_t plans; };
typedef struct history_plan { tn_kernel_plan head; int64_t count; uint64_t op; } history_plan;

static tn_status launch(const tn_kernel_plan* head, const tn_launch* call) {
  const history_plan* plan = (const history_plan*)head;
  const float* x = call->views[0].host;
  float* y = call->views[1].host;
  for (int64_t i = 0; i < plan->count; ++i) y[i] = plan->op == TN_OPID_NEG || x[i] < 0 ? -x[i] : x[i];
  return TN_OK;
}

static tn_status prepare(tn_instance* self, const tn_device_ref* ref, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  history_plan* plan = self->host->alloc(self->host->ctx, sizeof *plan, 8);
  (void)ref, (void)diag;
  if (plan == NULL) return TN_E_OOM;
  memset(plan, 0, sizeof *plan);
  plan->head.launch = launch, plan->head.self = self, plan->head.n_views = 2, plan->head.push_bytes = op->push_bytes;
  plan->count = 1, plan->op = op->op_id;
  for (int axis = 0; axis < op->type[0].rank; ++axis) plan->count *= op->type[0].dim[axis];
  ++self->plans;
  *out = &plan->head;
  return TN_OK;
}
static void retire(tn_instance* self, const tn_device_ref* ref, const tn_kernel_plan* plan) {
  (void)ref;
  self->host->free(self->host->ctx, (void*)plan);
  --self->plans;
}

static const tn_constraint needs[] = {
    {0, TN_NEED_DEVICE_KIND, TN_KIND_CPU, 0, 0, 0},
    {TN_ANY_OPERAND, TN_NEED_DTYPE, 0, UINT64_C(1) << TN_F32, 0, 0},
    {TN_ANY_OPERAND, TN_NEED_CONTIGUOUS, 0, 0, 0, 0},
};
/* Two rows, so that a host which takes its own struct's size for the stride finds rubbish in the second. */
static const tn_kernel_info rows[2] = {
    {.size = sizeof(tn_kernel_info), .flags = TN_KERNEL_DETERMINISTIC, .name = "history.abs", .op_id = TN_OPID_ABS, .op_min = 1, .op_max = 1,
     .tier = TN_TIER_NATIVE, .cons = needs, .n_cons = 3, .prepare = prepare, .retire = retire},
    {.size = sizeof(tn_kernel_info), .flags = TN_KERNEL_DETERMINISTIC, .name = "history.neg", .op_id = TN_OPID_NEG, .op_min = 1, .op_max = 1,
     .tier = TN_TIER_NATIVE, .cons = needs, .n_cons = 3, .prepare = prepare, .retire = retire},
};

static tn_status open_plugin(const tn_host* host, tn_instance** out, tn_diag* diag) {
  tn_instance* self;
  (void)diag;
#if defined(HISTORY_LATER)
  /* Fields that were added later are there only if the host says so. */
  if (TN_HAS(tn_host, host, tn_later_) && host->tn_later_[0] != UINT64_C(0x1A7E12)) return TN_E_ABI;
#endif
  self = host->alloc(host->ctx, sizeof *self, 8);
  if (self == NULL) return TN_E_OOM;
  self->host = host, self->plans = 0;
  *out = self;
  return TN_OK;
}
static tn_status quiesce(tn_instance* self, uint64_t timeout_ns, uint32_t* out_live, tn_diag* diag) {
  (void)timeout_ns, (void)diag;
  *out_live = self->plans;
  return TN_OK;
}
static void close_plugin(tn_instance* self) { self->host->free(self->host->ctx, self); }
static tn_status kernels(tn_instance* self, const tn_kernel_info** out, uint32_t* out_stride, uint32_t* out_n, tn_diag* diag) {
  (void)self, (void)diag;
  *out = rows, *out_stride = sizeof rows[0], *out_n = 2;
  return TN_OK;
}

static tn_plugin table = {.size = sizeof table, .open = open_plugin, .quiesce = quiesce, .close = close_plugin, .kernels = kernels};

TN_EXPORT const tn_plugin* tn_plugin_query(uint32_t abi, const tn_host* host) {
  const uint32_t lowest = HISTORY_MIN;
  (void)host;
  if (abi < lowest || abi > HISTORY_MAX) return NULL;
#if defined(HISTORY_LATER)
  memset(table.tn_later_, 0xA5, sizeof table.tn_later_); /* what an older host must not touch */
#endif
  table.abi = abi;
  return &table;
}
