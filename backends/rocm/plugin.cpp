// backends/rocm/plugin.cpp - the exported symbol and the cold record; the rest is backends/gpu_common over this folder's driver.
#include "backends/gpu_common/plugin.h"

TN_COLD({sizeof(tn_cold), 1, TN_ABI_CURRENT, TN_ABI_CURRENT, "dev.tenon.rocm", "0.1.0", TENON_TARGET, {0, 0, 0, 0}, TN_COLD_UNLOADABLE, 6,
         {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5"}});

extern "C" TN_EXPORT const tn_plugin* tn_plugin_query(uint32_t abi, const tn_host*) { return tenon::gpu::plugin_table(abi); }
