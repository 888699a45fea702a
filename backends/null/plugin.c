/* backends/null/plugin.c - record, lifecycle, device, memory, queues. Here: one device, whose memory is the host's and whose
 * work is done when its call returns. Replace one function at a time by your driver's. */
#include "null.h"

#ifndef NULL_DEVICES
#define NULL_DEVICES 1
#endif
#define GIB (UINT64_C(1) << 30)
/* Read from the file before any code of ours runs: identity, ABI range, target, instructions needed, libraries opened. */
TN_COLD({sizeof(tn_cold), 1, TN_ABI_CURRENT, TN_ABI_CURRENT, NULL_ID, "0.1.0", TNK_TARGET, {0, 0, 0, 0},
         TN_COLD_UNLOADABLE | TN_COLD_EMULATED, 0, {""}});

struct tn_device { tn_instance* owner; };
struct tn_dev_queue { tn_instance* owner; };
struct tn_dev_timeline { tn_instance* owner; tnk_line line; };

static void* object(tn_instance* self, size_t bytes, tn_diag* diag) { /* zeros behind its owner, counted as alive */
  tn_instance** p = (tn_instance**)calloc(1, bytes);
  if (p) *p = self, null_count(self, 1);
  else tnk_fail(diag, TN_E_OOM, 900, "no memory\nwhy: %u bytes asked\ntry: free memory", (unsigned)bytes);
  return p;
}
static void drop(tn_instance* self, void* p) {
  null_count(self, -1);
  free(p);
}

/* ---- lifecycle: open() opens the driver, with dlopen. Absent: TN_E_UNAVAILABLE, naming the library that was wanted. */
static tn_status null_open(const tn_host* host, tn_instance** out, tn_diag* diag) {
  tn_instance* self = (tn_instance*)calloc(1, sizeof *self);
  if (!self) return tnk_fail(diag, TN_E_OOM, 900, "open: no memory\nwhy: the heap is exhausted\ntry: free memory");
  self->host = host;
  self->kind = tnk_kind(NULL_ID);
  null_fill_kernels(self);
  *out = self;
  return TN_OK;
}
static tn_status null_quiesce(tn_instance* self, uint64_t timeout_ns, uint32_t* out_live, tn_diag* diag) {
  /* wait here for work that still runs */
  *out_live = __atomic_load_n(&self->live, __ATOMIC_SEQ_CST);
  return TN_OK;
}
static void null_close(tn_instance* self) { free(self); }

/* ---- devices: fill at most `cap` entries, `stride` bytes apart; *out_n is the full count, so that cap 0 counts. */
static tn_status null_devices(tn_instance* self, tn_device_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  tn_device_info info;
  *out_n = NULL_DEVICES;
  for (uint32_t i = 0; i < cap && i < *out_n; ++i) {
    memset(&info, 0, sizeof info);
    info.size = stride < sizeof info ? stride : (uint32_t)sizeof info;
    info.index = i;
    info.kind = self->kind;
    info.flags = TN_DEVICE_EMULATED | TN_DEVICE_INLINE; /* drop both for hardware that works beside the host */
    info.mem_total_bytes = info.mem_free_bytes = GIB;
    info.dtype_storage = info.dtype_compute = TNK_TYPES;
    info.n_spaces = 1;
    snprintf(info.name, sizeof info.name, "null device %u", (unsigned)i);
    memcpy((char*)out + (size_t)i * stride, &info, info.size);
  }
  return TN_OK;
}
static tn_status null_device_open(tn_instance* self, uint32_t index, const tn_ext* options, tn_device** out, tn_diag* diag) {
  const uint32_t count = NULL_DEVICES;
  if (index >= count)
    return tnk_fail(diag, TN_E_NOT_FOUND, 901, "no device null:%u\nwhy: there are %u\ntry: a smaller index", (unsigned)index, (unsigned)count);
  for (; options; options = options->next)
    if (options->id & TN_EXT_CRITICAL)
      return tnk_fail(diag, TN_E_EXT, 902, "unknown option\nwhy: extension %u is critical\ntry: leave it out", (unsigned)options->id);
  *out = (tn_device*)object(self, sizeof **out, diag);
  return *out ? TN_OK : TN_E_OOM;
}
static void null_device_close(tn_device* device) { drop(device->owner, device); }

/* ---- memory: the host pools, so these may be slow. HOST_VISIBLE only if tn_buffer.host may be read and written by the CPU. */
static tn_status null_spaces(tn_device* device, tn_space_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  const uint32_t size = stride < sizeof(tn_space_info) ? stride : (uint32_t)sizeof(tn_space_info);
  const tn_space_info info = {size, 0, NULL, TN_SPACE_PAGEABLE, TN_SPACE_HOST_VISIBLE | TN_SPACE_COHERENT, 64, GIB, GIB};
  *out_n = 1;
  if (cap) memcpy(out, &info, info.size);
  return TN_OK;
}
static tn_status null_alloc(tn_device* device, uint32_t space, uint64_t bytes, uint64_t align, tn_buffer* out, tn_diag* diag) {
  void* p = NULL;
  if (space != 0 || align & (align - 1))
    return tnk_fail(diag, TN_E_ARG, 903, "alloc: space %u, alignment %llu\nwhy: there is space 0, alignments are powers of two\ntry: 0 and 64",
                    (unsigned)space, (unsigned long long)align);
  const uint64_t used = bytes > GIB ? GIB : __atomic_fetch_add(&device->owner->used_bytes, bytes, __ATOMIC_SEQ_CST);
  if (used + bytes > GIB || posix_memalign(&p, align < 64 ? 64 : align, bytes ? bytes : 1) != 0) {
    if (bytes <= GIB) __atomic_fetch_sub(&device->owner->used_bytes, bytes, __ATOMIC_SEQ_CST);
    return tnk_fail(diag, TN_E_OOM, 904, "alloc: out of memory\nwhy: %llu bytes asked, %llu of 1 GiB in use\ntry: a smaller batch",
                    (unsigned long long)bytes, (unsigned long long)used);
  }
  const tn_buffer made = {(uint64_t)(uintptr_t)p, 0, bytes, p, space, 0}; /* the handle is yours to define, but not 0 */
  *out = made;
  null_count(device->owner, 1);
  return TN_OK;
}
static void null_free(tn_device* device, const tn_buffer* buffer) { /* no queue uses it any more: the host has waited */
  __atomic_fetch_sub(&device->owner->used_bytes, buffer->bytes, __ATOMIC_SEQ_CST);
  drop(device->owner, buffer->host);
}

/* ---- queues: in order, one thread at a time. One side of a copy may be host memory (handle 0). */
static tn_status null_copy(tn_dev_queue* queue, const tn_view* dst, const tn_view* src, tn_diag* diag) {
  if (src->bytes < dst->bytes || !src->host || !dst->host)
    return tnk_fail(diag, TN_E_ARG, 905, "copy: no source\nwhy: %llu bytes for %llu\ntry: equal sizes", (unsigned long long)src->bytes,
                    (unsigned long long)dst->bytes);
  memmove(dst->host, src->host, dst->bytes);
  return TN_OK;
}
static tn_status null_queue_open(tn_device* device, uint32_t flags, int32_t priority, tn_dev_queue** out, tn_diag* diag) {
  *out = (tn_dev_queue*)object(device->owner, sizeof **out, diag);
  return *out ? TN_OK : TN_E_OOM;
}
static void null_queue_close(tn_dev_queue* queue) { drop(queue->owner, queue); }

/* ---- timelines: a number that only grows, from any thread. queue NULL: by the host, now; else in the queue's order. */
static tn_status null_timeline_open(tn_device* device, uint64_t initial, tn_dev_timeline** out, tn_diag* diag) {
  *out = (tn_dev_timeline*)object(device->owner, sizeof **out, diag);
  if (!*out) return TN_E_OOM;
  tnk_line_open(&(*out)->line, initial);
  return TN_OK;
}
static void null_timeline_close(tn_dev_timeline* timeline) {
  tnk_line_close(&timeline->line);
  drop(timeline->owner, timeline);
}
static tn_status null_signal(tn_dev_queue* queue, tn_dev_timeline* timeline, uint64_t value, tn_diag* diag) {
  return tnk_line_signal(&timeline->line, value, diag);
}
static tn_status null_wait(tn_dev_queue* queue, tn_dev_timeline* timeline, uint64_t value, uint64_t timeout_ns, tn_diag* diag) {
  return tnk_line_wait(&timeline->line, value, queue ? TN_FOREVER : timeout_ns, diag); /* an inline queue waits on its caller */
}
static tn_status null_query(tn_dev_timeline* timeline, uint64_t after, uint64_t* out_value, uint64_t* out_failed, tn_diag* diag) {
  *out_value = tnk_line_value(&timeline->line);
  *out_failed = 0; /* else the first value above `after` whose work failed; here work fails in its own call */
  return TN_OK;
}

static tn_status null_kernels(tn_instance* self, const tn_kernel_info** out, uint32_t* out_stride, uint32_t* out_n, tn_diag* diag) {
  *out = self->kernel; /* rows live until close */
  *out_stride = sizeof(tn_kernel_info);
  *out_n = NULL_KERNELS;
  return TN_OK;
}

/* NULL: no optional interfaces, no capabilities, no import and export of memory, no ops of our own. */
static const tn_plugin table = {
    sizeof(tn_plugin), TN_ABI_CURRENT, NULL, null_open, null_quiesce, null_close, NULL,
    null_devices, NULL, null_device_open, null_device_close, null_spaces, null_alloc, null_free, NULL, NULL, null_copy,
    null_queue_open, null_queue_close, null_timeline_open, null_timeline_close, null_signal, null_wait, null_query, null_kernels, NULL};

TN_EXPORT const tn_plugin* tn_plugin_query(uint32_t abi, const tn_host* host) {
  return abi == TN_ABI_CURRENT ? &table : NULL;
}
