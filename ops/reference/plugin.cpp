// ops/reference/plugin.cpp - lifecycle, kernels and the table of the reference plugin.
#include "ops/reference/plugin.h"

#include <chrono>
#include <new>
#include <thread>

#include "ops/reference/cpu_device.h"
#include "ops/reference/diag.h"

namespace tenon::reference {
namespace {

tn_status launch(const tn_kernel_plan* head, const tn_launch* call) {
  const Plan* plan = plan_of(head);
  if (call->n_views < head->n_views || call->push_bytes < head->push_bytes)
    return fail(call->diag, TN_E_ARG, kErrViewCount, "launch: operands missing\nwhy: %u views and %u push bytes given, %u and %u needed\ntry: pass what the plan states",
                call->n_views, call->push_bytes, head->n_views, head->push_bytes);
  void* data[kMaxViews];
  for (uint32_t k = 0; k < head->n_views; ++k) {
    data[k] = call->views[k].host;
    if (data[k] == nullptr && plan->high[k] > plan->low[k] && call->views[k].handle != 0)
      return fail(call->diag, TN_E_ARG, kErrNoHostPointer, "launch: operand %u has no host address\nwhy: reference kernels read host memory\ntry: copy it to cpu:0", k);
  }
  return plan->prepared->run({data, call->push, plan->host}, call->diag);
}

tn_status prepare_kernel(tn_instance* self, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  const tn_status s = make_plan(*op, KernelTable::row_of(op->op_id), self, self->host, launch, out, diag);
  if (s == TN_OK) self->live.fetch_add(1, std::memory_order_relaxed);
  return s;
}
void retire_kernel(tn_instance* self, const tn_device_ref*, const tn_kernel_plan* plan) {
  drop_plan(plan);
  self->live.fetch_sub(1, std::memory_order_relaxed);
}

tn_status open(const tn_host* host, tn_instance** out, tn_diag* diag) {
  auto* self = new (std::nothrow) tn_instance{};
  if (self == nullptr) return fail(diag, TN_E_OOM, kErrOutOfMemory, "open: no memory\nwhy: the heap is exhausted\ntry: free memory");
  self->host = host;
  self->kernels.init("reference", TN_KIND_CPU, prepare_kernel, retire_kernel);
  *out = self;
  return TN_OK;
}

tn_status quiesce(tn_instance* self, uint64_t timeout_ns, uint32_t* out_live, tn_diag*) {
  // Nothing runs here by itself; what is still open can only go away through its owner.
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns < 1000000000 ? timeout_ns : 1000000000);
  while (self->live.load() != 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  *out_live = self->live.load();
  return TN_OK;
}
void close(tn_instance* self) { delete self; }
const void* iface(tn_instance*, const char*) { return nullptr; }

tn_status kernels(tn_instance* self, const tn_kernel_info** out, uint32_t* out_stride, uint32_t* out_n, tn_diag*) {
  *out = self->kernels.row, *out_stride = sizeof(tn_kernel_info), *out_n = KernelTable::kCount;
  return TN_OK;
}
tn_status ops(tn_instance*, const tn_op_def** out, uint32_t* out_stride, uint32_t* out_n, tn_diag*) {
  *out = nullptr, *out_stride = sizeof(tn_op_def), *out_n = 0;
  return TN_OK;
}

constexpr tn_plugin kTable = {
    sizeof(tn_plugin), TN_ABI_CURRENT, nullptr, open, quiesce, close, iface,
    cpu_devices, cpu_device_caps, cpu_device_open, cpu_device_close,
    cpu_spaces, cpu_alloc, cpu_free, nullptr, nullptr, cpu_copy,
    cpu_queue_open, cpu_queue_close,
    cpu_timeline_open, cpu_timeline_close, cpu_signal, cpu_wait, cpu_query,
    kernels, ops};

}  // namespace
}  // namespace tenon::reference

extern "C" const tn_plugin* tn_reference_query(uint32_t abi, const tn_host*) {
  return abi == TN_ABI_CURRENT ? &tenon::reference::kTable : nullptr;
}
