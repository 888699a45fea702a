#include "tests/machine/planted.h"

#include <tenon/ops.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

struct tn_instance { uint32_t devices, kind; };
struct tn_device { int unused; };
struct tn_dev_queue { int unused; };

namespace tenon::test {
namespace {

tn_instance the_hosts{2, TN_KIND_CPU}, the_odd{1, 0x80000ABC};
tn_device the_device;
tn_dev_queue the_queue;

tn_status open_hosts(const tn_host*, tn_instance** out, tn_diag*) { return *out = &the_hosts, TN_OK; }
tn_status open_odd(const tn_host*, tn_instance** out, tn_diag*) { return *out = &the_odd, TN_OK; }
tn_status quiesce(tn_instance*, uint64_t, uint32_t* out_live, tn_diag*) { return *out_live = 0, TN_OK; }
void close(tn_instance*) {}
tn_status devices(tn_instance* self, tn_device_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag*) {
  *out_n = self->devices;
  for (uint32_t i = 0; i < cap && i < self->devices; ++i) {
    tn_device_info info{};
    info.size = sizeof info, info.index = i, info.kind = self->kind, info.flags = TN_DEVICE_INLINE;
    info.mem_total_bytes = info.mem_free_bytes = 1 << 30, info.n_spaces = 1;
    std::snprintf(info.name, sizeof info.name, "Planted %u", i);
    std::snprintf(info.driver, sizeof info.driver, "7.1");
    std::memcpy(reinterpret_cast<char*>(out) + size_t{i} * stride, &info, sizeof info);
  }
  return TN_OK;
}
tn_status device_open(tn_instance*, uint32_t, const tn_ext*, tn_device** out, tn_diag*) { return *out = &the_device, TN_OK; }
void device_close(tn_device*) {}
tn_status spaces(tn_device*, tn_space_info* out, uint32_t, uint32_t cap, uint32_t* out_n, tn_diag*) {
  *out_n = 1;
  if (cap) *out = {sizeof *out, 3, nullptr, TN_SPACE_PAGEABLE, TN_SPACE_HOST_VISIBLE | TN_SPACE_COHERENT, 64, 1 << 30, 1 << 30};
  return TN_OK;
}
tn_status alloc(tn_device*, uint32_t, uint64_t bytes, uint64_t align, tn_buffer* out, tn_diag*) {
  *out = {};
  out->host = std::aligned_alloc(align, (bytes + align - 1) / align * align);
  out->handle = reinterpret_cast<uint64_t>(out->host), out->bytes = bytes;
  return out->host ? TN_OK : TN_E_OOM;
}
void release(tn_device*, const tn_buffer* b) { std::free(b->host); }
tn_status copy(tn_dev_queue*, const tn_view* dst, const tn_view* src, tn_diag*) { return std::memcpy(dst->host, src->host, dst->bytes), TN_OK; }
tn_status queue_open(tn_device*, uint32_t, int32_t, tn_dev_queue** out, tn_diag*) { return *out = &the_queue, TN_OK; }
void queue_close(tn_dev_queue*) {}

tn_status supports(tn_instance*, const tn_device_ref*, const tn_op*, tn_support* out, tn_diag*) { return out->est_ns = kStatedNs, TN_OK; }
tn_status nothing(const tn_kernel_plan*, const tn_launch*) { return TN_OK; }
const tn_kernel_plan kPlan{nothing, nullptr, 0, 3, 0, 0, 0};
tn_status prepare(tn_instance*, const tn_device_ref*, const tn_op*, const tn_kernel_plan** out, tn_diag*) { return *out = &kPlan, TN_OK; }
void retire(tn_instance*, const tn_device_ref*, const tn_kernel_plan*) {}

const tn_constraint kNeeds[] = {{TN_ANY_OPERAND, TN_NEED_DEVICE_KIND, TN_KIND_CPU, 0, 0, 0}, {TN_ANY_OPERAND, TN_NEED_DTYPE, 0, 1u << TN_F32, 0, 0}};
tn_status kernels(tn_instance* self, const tn_kernel_info** out, uint32_t* out_stride, uint32_t* out_n, tn_diag*) {
  static tn_kernel_info row;
  row = {};
  row.size = sizeof row, row.name = "hosts.matmul", row.op_id = TN_OPID_MATMUL, row.op_min = row.op_max = 1, row.tier = TN_TIER_NATIVE;
  row.flags = TN_KERNEL_DETERMINISTIC, row.cons = kNeeds, row.n_cons = 2;
  row.supports = supports, row.prepare = prepare, row.retire = retire;
  *out = &row, *out_stride = sizeof row, *out_n = self == &the_hosts ? 1 : 0;
  return TN_OK;
}

tn_plugin table_with(decltype(tn_plugin::open) open) {
  tn_plugin t{};
  t.size = sizeof t, t.abi = TN_ABI_CURRENT;
  t.open = open, t.quiesce = quiesce, t.close = close, t.devices = devices, t.device_open = device_open, t.device_close = device_close;
  t.spaces = spaces, t.alloc = alloc, t.free = release, t.copy = copy, t.queue_open = queue_open, t.queue_close = queue_close, t.kernels = kernels;
  return t;
}

}  // namespace

const tn_plugin* hosts_query(uint32_t, const tn_host*) {
  static const tn_plugin table = table_with(open_hosts);
  return &table;
}
const tn_plugin* odd_query(uint32_t, const tn_host*) {
  static const tn_plugin table = table_with(open_odd);
  return &table;
}

}  // namespace tenon::test
