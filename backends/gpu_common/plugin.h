// backends/gpu_common/plugin.h - a whole Tenon plugin over driver.h. A backend's plugin.cpp holds its cold record and
//
//   extern "C" TN_EXPORT const tn_plugin* tn_plugin_query(uint32_t abi, const tn_host*) { return tenon::gpu::plugin_table(abi); }
//
// Settings of every such plugin, NAME being driver_name():
//   NAME.limit.binding_bytes, .param_bytes, .local_bytes, .threads, .groups, .bindings   lower a limit that the device states
//   NAME.limit.index32       1: kernels are made as if the device had no 64-bit indices
//   NAME.cache_dir           full path of the folder for compiled kernels, or off. Default: kernels/ in the folder that the host
//                            states as loader.cache; none where it states none
//   NAME.cache_bytes         what that folder may hold, 256 MiB by default; the kernels that were not used for longest go first
#pragma once
#include <tenon/plugin.h>

namespace tenon::gpu {

// The table for `abi`, NULL when it is not ours.
const tn_plugin* plugin_table(uint32_t abi);

}  // namespace tenon::gpu
