#include "tests/errors/fake.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

struct tn_instance { int unused; };
struct tn_device { int unused; };
struct tn_dev_queue { int unused; };

namespace tenon::errors {

Fake fake;

namespace {

tn_instance the_instance;
tn_device the_device;
tn_dev_queue the_queue;

tn_status open(const tn_host*, tn_instance** out, tn_diag* diag) {
  *out = &the_instance;
  if (fake.open_status != TN_OK) {
    *diag = {};
    diag->size = sizeof *diag;
    diag->status = fake.open_status;
    diag->len = static_cast<uint32_t>(std::snprintf(diag->msg, sizeof diag->msg, "libfake.so.1 is absent"));
  }
  return fake.open_status;
}
tn_status quiesce(tn_instance*, uint64_t, uint32_t* out_live, tn_diag*) { return *out_live = fake.live, TN_OK; }
void close(tn_instance*) {}
tn_status devices(tn_instance*, tn_device_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag*) {
  *out_n = fake.devices;
  for (uint32_t i = 0; i < cap && i < fake.devices; ++i) {
    tn_device_info info{};
    info.size = sizeof info;
    info.index = i;
    info.kind = 0x80000F4E;
    info.flags = TN_DEVICE_INLINE;
    info.mem_total_bytes = info.mem_free_bytes = 1 << 30;
    info.n_spaces = 1;
    std::memcpy(reinterpret_cast<char*>(out) + size_t{i} * stride, &info, sizeof info);
  }
  return TN_OK;
}
tn_status caps(tn_instance*, uint32_t, tn_cap*, uint32_t, uint32_t* out_n, tn_diag*) { return *out_n = 0, TN_OK; }
tn_status device_open(tn_instance*, uint32_t, const tn_ext*, tn_device** out, tn_diag*) { return *out = &the_device, TN_OK; }
void device_close(tn_device*) {}
tn_status spaces(tn_device*, tn_space_info* out, uint32_t, uint32_t cap, uint32_t* out_n, tn_diag*) {
  *out_n = 1;
  if (cap) out->kind = TN_SPACE_PAGEABLE, out->flags = TN_SPACE_HOST_VISIBLE, out->align_bytes = 64;
  return TN_OK;
}
tn_status alloc(tn_device*, uint32_t, uint64_t bytes, uint64_t align, tn_buffer* out, tn_diag*) {
  void* p = std::aligned_alloc(align, (bytes + align - 1) / align * align);
  *out = tn_buffer{reinterpret_cast<uint64_t>(p), 0, bytes, p, 0, 0};
  return TN_OK;
}
void free(tn_device*, const tn_buffer* b) { std::free(b->host); }
tn_status copy(tn_dev_queue*, const tn_view* dst, const tn_view* src, tn_diag*) { return std::memmove(dst->host, src->host, dst->bytes), TN_OK; }
tn_status queue_open(tn_device*, uint32_t, int32_t, tn_dev_queue** out, tn_diag*) { return *out = &the_queue, TN_OK; }
void queue_close(tn_dev_queue*) {}
tn_status kernels(tn_instance*, const tn_kernel_info** out, uint32_t* out_stride, uint32_t* out_n, tn_diag*) {
  *out = fake.kernels.data(), *out_stride = fake.kernel_stride, *out_n = static_cast<uint32_t>(fake.kernels.size());
  return TN_OK;
}

tn_plugin table;

}  // namespace

const tn_plugin* fake_query(uint32_t abi, const tn_host*) {
  if (fake.refuses) return nullptr;
  table = tn_plugin{};
  table.size = sizeof table;
  table.abi = abi;
  table.open = open;
  table.quiesce = quiesce;
  table.close = fake.without_close ? nullptr : close;
  table.devices = devices;
  table.caps = caps;
  table.device_open = device_open;
  table.device_close = device_close;
  table.spaces = spaces;
  table.alloc = alloc;
  table.free = free;
  table.copy = copy;
  table.queue_open = queue_open;
  table.queue_close = queue_close;
  table.kernels = kernels;
  return &table;
}

}  // namespace tenon::errors
