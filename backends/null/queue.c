/* backends/null/queue.c - queues and timelines. */
#include "null.h"

/* Work of a queue runs in order. One thread at a time uses a queue. */
tn_status null_queue_open(tn_device* device, uint32_t flags, int32_t priority, tn_dev_queue** out, tn_diag* diag) {
  (void)device, (void)flags, (void)priority;
  *out = NULL;
  return null_unsupported(diag, "queue_open");
}
void null_queue_close(tn_dev_queue* queue) { (void)queue; }
/* A timeline is a number that only grows; any thread may look at it. */
tn_status null_timeline_open(tn_device* device, uint64_t initial, tn_dev_timeline** out, tn_diag* diag) {
  (void)device, (void)initial;
  *out = NULL;
  return null_unsupported(diag, "timeline_open");
}
void null_timeline_close(tn_dev_timeline* timeline) { (void)timeline; }
/* queue NULL: by the host, now. Else after all work enqueued before. */
tn_status null_signal(tn_dev_queue* queue, tn_dev_timeline* timeline, uint64_t value, tn_diag* diag) {
  (void)queue, (void)timeline, (void)value;
  return null_unsupported(diag, "signal");
}
/* queue NULL: blocks the caller, at most timeout_ns. Else the queue's later work waits. */
tn_status null_wait(tn_dev_queue* queue, tn_dev_timeline* timeline, uint64_t value, uint64_t timeout_ns, tn_diag* diag) {
  (void)queue, (void)timeline, (void)value, (void)timeout_ns;
  return null_unsupported(diag, "wait");
}
/* *out_failed: first value above `after` whose work failed, with the reason in diag; 0 = none. */
tn_status null_query(tn_dev_timeline* timeline, uint64_t after, uint64_t* out_value, uint64_t* out_failed, tn_diag* diag) {
  (void)timeline, (void)after;
  if (out_value) *out_value = 0;
  if (out_failed) *out_failed = 0;
  return null_unsupported(diag, "query");
}
