/* backends/null/null.h - what the backend's two files share. */
#ifndef TENON_BACKEND_NULL_H
#define TENON_BACKEND_NULL_H
#include <tenon/kit.h>

#define NULL_ID "dev.tenon.null" /* its last part names the devices: null:0 */
enum { NULL_KERNELS = 6 };

struct tn_instance { /* a plugin's state in one runtime; add what your driver needs */
  const tn_host* host; uint64_t used_bytes;
  uint32_t live, kind; /* live: devices, queues, timelines, buffers and plans, for quiesce */
  tn_kernel_info kernel[NULL_KERNELS];
  tn_constraint constraint[NULL_KERNELS][4];
};
static inline void null_count(tn_instance* self, int step) { __atomic_fetch_add(&self->live, (uint32_t)step, __ATOMIC_SEQ_CST); }

void null_fill_kernels(tn_instance* self); /* kernels.c: fills self->kernel */
#endif
