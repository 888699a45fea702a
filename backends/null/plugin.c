/* backends/null/plugin.c - the exported symbol, the cold record and the lifecycle. */
#include "null.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ops.h>

#include "kernels.def"

#if defined(__aarch64__)
#define NULL_TARGET "aarch64-linux-gnu"
#else
#define NULL_TARGET "x86_64-linux-gnu"
#endif
/* Read from the file before any code of ours runs: identity, ABI range, target, instructions needed, libraries opened. */
TN_COLD({sizeof(tn_cold), 1, TN_ABI_CURRENT, TN_ABI_CURRENT, "dev.tenon.null", "0.1.0", NULL_TARGET, {0, 0, 0, 0},
         TN_COLD_UNLOADABLE, 0, {""}});

tn_status null_unsupported(tn_diag* diag, const char* what) {
  if (diag) {
    int n;
    memset(diag, 0, sizeof *diag);
    diag->size = sizeof *diag;
    diag->status = TN_E_UNSUPPORTED;
    diag->id = 7u << 16 | 59; /* TN-DEVICE-059 */
    n = snprintf(diag->msg, sizeof diag->msg,
                 "%s: the null backend has no devices\nwhy: it is the template to copy, 0 devices are offered\ntry: choose a device of another backend", what);
    diag->len = (uint32_t)(n < 0 ? 0 : n < (int)sizeof diag->msg ? n : (int)sizeof diag->msg - 1);
  }
  return TN_E_UNSUPPORTED;
}

/* Opens the driver here. Absent driver: return TN_E_UNAVAILABLE and name the library that dlopen wanted. */
static tn_status null_open(const tn_host* host, tn_instance** out, tn_diag* diag) {
  tn_instance* self = malloc(sizeof *self);
  if (!self) {
    null_unsupported(diag, "open");
    if (diag) diag->status = TN_E_OOM;
    return TN_E_OOM;
  }
  self->host = host;
  *out = self;
  return TN_OK;
}

/* Waits until nothing of ours is in use; *out_live counts what still is. */
static tn_status null_quiesce(tn_instance* self, uint64_t timeout_ns, uint32_t* out_live, tn_diag* diag) {
  (void)self, (void)timeout_ns, (void)diag;
  *out_live = 0;
  return TN_OK;
}

static void null_close(tn_instance* self) { free(self); }

/* Optional interfaces by name, e.g. "tn.native.v1". */
static const void* null_iface(tn_instance* self, const char* name) {
  (void)self, (void)name;
  return NULL;
}

/* Rows live until close. The host checks constraints itself, then asks supports, then prepare. */
static tn_status null_kernels(tn_instance* self, const tn_kernel_info** out, uint32_t* out_stride, uint32_t* out_n, tn_diag* diag) {
  (void)self, (void)diag;
  *out = NULL;
  *out_stride = sizeof(tn_kernel_info);
  *out_n = 0;
  return TN_OK;
}

/* Ops of your own, with their shape rules and derivatives. */
static tn_status null_ops(tn_instance* self, const tn_op_def** out, uint32_t* out_stride, uint32_t* out_n, tn_diag* diag) {
  (void)self, (void)diag;
  *out = NULL;
  *out_stride = sizeof(tn_op_def);
  *out_n = 0;
  return TN_OK;
}

static const tn_plugin table = {
    sizeof(tn_plugin), TN_ABI_CURRENT, NULL,
    null_open, null_quiesce, null_close, null_iface,
    null_devices, null_caps, null_device_open, null_device_close,
    null_spaces, null_alloc, null_free, null_import, null_export, null_copy,
    null_queue_open, null_queue_close,
    null_timeline_open, null_timeline_close, null_signal, null_wait, null_query,
    null_kernels, null_ops};

TN_EXPORT const tn_plugin* tn_plugin_query(uint32_t abi, const tn_host* host) {
  (void)host;
  return abi == TN_ABI_CURRENT ? &table : NULL;
}
