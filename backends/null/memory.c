/* backends/null/memory.c - memory spaces, buffers, copies. */
#include "null.h"

/* Kinds: DEVICE, PINNED, UNIFIED, PAGEABLE. HOST_VISIBLE only if tn_buffer.host may be read and written by the CPU. */
tn_status null_spaces(tn_device* device, tn_space_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  (void)device, (void)out, (void)stride, (void)cap;
  *out_n = 0;
  return null_unsupported(diag, "spaces");
}
/* TN_E_OOM names what was asked and what was left. A nonzero handle is yours to define. */
tn_status null_alloc(tn_device* device, uint32_t space, uint64_t bytes, uint64_t align, tn_buffer* out, tn_diag* diag) {
  (void)device, (void)space, (void)bytes, (void)align, (void)out;
  return null_unsupported(diag, "alloc");
}
/* No queue uses the buffer any more: the host has waited. */
void null_free(tn_device* device, const tn_buffer* buffer) { (void)device, (void)buffer; }
tn_status null_import(tn_device* device, const tn_ext* external, tn_buffer* out, tn_diag* diag) {
  (void)device, (void)external, (void)out;
  return null_unsupported(diag, "import_mem");
}
tn_status null_export(tn_device* device, const tn_buffer* buffer, tn_ext* external, tn_diag* diag) {
  (void)device, (void)buffer, (void)external;
  return null_unsupported(diag, "export_mem");
}
/* In the queue's order; one side may be host memory (handle 0, host set). Does not block. */
tn_status null_copy(tn_dev_queue* queue, const tn_view* dst, const tn_view* src, tn_diag* diag) {
  (void)queue, (void)dst, (void)src;
  return null_unsupported(diag, "copy");
}
