/* backends/null/null.h - what the template's files share. */
#ifndef TENON_BACKEND_NULL_H
#define TENON_BACKEND_NULL_H
#include <tenon/plugin.h>

struct tn_instance { const tn_host* host; }; /* a plugin's state in one runtime; add what your driver needs */

/* Fills diag as every failure must: what, why with values, one thing to try. Returns TN_E_UNSUPPORTED. */
tn_status null_unsupported(tn_diag* diag, const char* what);

/* device.c */
tn_status null_devices(tn_instance*, tn_device_info*, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag*);
tn_status null_caps(tn_instance*, uint32_t index, tn_cap*, uint32_t cap, uint32_t* out_n, tn_diag*);
tn_status null_device_open(tn_instance*, uint32_t index, const tn_ext*, tn_device**, tn_diag*);
void null_device_close(tn_device*);
/* memory.c */
tn_status null_spaces(tn_device*, tn_space_info*, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag*);
tn_status null_alloc(tn_device*, uint32_t space, uint64_t bytes, uint64_t align, tn_buffer*, tn_diag*);
void null_free(tn_device*, const tn_buffer*);
tn_status null_import(tn_device*, const tn_ext*, tn_buffer*, tn_diag*);
tn_status null_export(tn_device*, const tn_buffer*, tn_ext*, tn_diag*);
tn_status null_copy(tn_dev_queue*, const tn_view* dst, const tn_view* src, tn_diag*);
/* queue.c */
tn_status null_queue_open(tn_device*, uint32_t flags, int32_t priority, tn_dev_queue**, tn_diag*);
void null_queue_close(tn_dev_queue*);
tn_status null_timeline_open(tn_device*, uint64_t initial, tn_dev_timeline**, tn_diag*);
void null_timeline_close(tn_dev_timeline*);
tn_status null_signal(tn_dev_queue*, tn_dev_timeline*, uint64_t value, tn_diag*);
tn_status null_wait(tn_dev_queue*, tn_dev_timeline*, uint64_t value, uint64_t timeout_ns, tn_diag*);
tn_status null_query(tn_dev_timeline*, uint64_t after, uint64_t* out_value, uint64_t* out_failed, tn_diag*);
#endif
