// ops/reference/cpu_device.h - the device cpu:0: host memory, inline queues, timelines that advance when signalled.
//
// A launch runs before it returns, so a queue's order is the calling order and a signal takes effect at once; a wait in a
// queue therefore waits on the calling thread. Timelines may be signalled and waited for from any thread.
#pragma once
#include <tenon/plugin.h>

namespace tenon::reference {

// Entries of the plugin table, in its order; all threads as plugin.h says.
tn_status cpu_devices(tn_instance*, tn_device_info*, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag*);
tn_status cpu_device_caps(tn_instance*, uint32_t index, tn_cap*, uint32_t cap, uint32_t* out_n, tn_diag*);
tn_status cpu_device_open(tn_instance*, uint32_t index, const tn_ext*, tn_device** out, tn_diag*);
void cpu_device_close(tn_device*);
tn_status cpu_spaces(tn_device*, tn_space_info*, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag*);
tn_status cpu_alloc(tn_device*, uint32_t space, uint64_t bytes, uint64_t align, tn_buffer*, tn_diag*);
void cpu_free(tn_device*, const tn_buffer*);
tn_status cpu_copy(tn_dev_queue*, const tn_view* dst, const tn_view* src, tn_diag*);
tn_status cpu_queue_open(tn_device*, uint32_t flags, int32_t priority, tn_dev_queue** out, tn_diag*);
void cpu_queue_close(tn_dev_queue*);
tn_status cpu_timeline_open(tn_device*, uint64_t initial, tn_dev_timeline** out, tn_diag*);
void cpu_timeline_close(tn_dev_timeline*);
tn_status cpu_signal(tn_dev_queue*, tn_dev_timeline*, uint64_t value, tn_diag*);
tn_status cpu_wait(tn_dev_queue*, tn_dev_timeline*, uint64_t value, uint64_t timeout_ns, tn_diag*);
tn_status cpu_query(tn_dev_timeline*, uint64_t after, uint64_t* out_value, uint64_t* out_failed, tn_diag*);

}  // namespace tenon::reference

// What one runtime has open; defined here because C names it tn_instance.
#include <atomic>

#include "ops/reference/kernels.h"
struct tn_instance {
  const tn_host* host = nullptr;
  std::atomic<uint32_t> live{0};  // buffers, queues, timelines, devices, plans
  tenon::reference::KernelTable kernels;
};
