/* backends/null/device.c - which devices there are and what they can do. */
#include "null.h"

/* Fill at most `cap` entries, `stride` bytes apart; *out_n is the full count, so that cap 0 counts. */
tn_status null_devices(tn_instance* self, tn_device_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  (void)self, (void)out, (void)stride, (void)cap, (void)diag;
  *out_n = 0;
  return TN_OK;
}
/* Keys are in tenon/caps.def. Leave out what you do not know; say where each value is from (provenance). */
tn_status null_caps(tn_instance* self, uint32_t index, tn_cap* out, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  (void)self, (void)index, (void)out, (void)cap;
  *out_n = 0;
  return null_unsupported(diag, "caps");
}
/* The slow part of the driver may start here, once. */
tn_status null_device_open(tn_instance* self, uint32_t index, const tn_ext* options, tn_device** out, tn_diag* diag) {
  (void)self, (void)index, (void)options;
  *out = NULL;
  return null_unsupported(diag, "device_open");
}
void null_device_close(tn_device* device) { (void)device; }
