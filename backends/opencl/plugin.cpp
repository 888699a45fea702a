// backends/opencl/plugin.cpp - the cold record and the one exported symbol.
#include "backends/gpu_common/plugin.h"

#if defined(__aarch64__)
#define TENON_OPENCL_TARGET "aarch64-linux-gnu"
#else
#define TENON_OPENCL_TARGET "x86_64-linux-gnu"
#endif
TN_COLD({sizeof(tn_cold), 1, TN_ABI_CURRENT, TN_ABI_CURRENT, "dev.tenon.opencl", "0.1.0", TENON_OPENCL_TARGET, {0, 0, 0, 0}, TN_COLD_UNLOADABLE, 1, {"libOpenCL.so.1"}});

extern "C" TN_EXPORT const tn_plugin* tn_plugin_query(uint32_t abi, const tn_host*) { return tenon::gpu::plugin_table(abi); }
