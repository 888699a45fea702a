// kernel/find_device.h - from what a person writes to a device: "auto", "cuda:1", "cuda,cpu", "uuid:...", "pci:0000:65:00.0".
#pragma once
#include <cstdint>

#include "kernel/runtime.h"

namespace tenon::kernel {

// See tn_device_find. Opens what it finds, and nothing on the way that is not asked for. Threads: any.
tn_status find_device(Runtime& rt, const char* spec, uint32_t policy, uint32_t* out, tn_diag* diag);

}  // namespace tenon::kernel
