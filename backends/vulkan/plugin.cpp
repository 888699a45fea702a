// backends/vulkan/plugin.cpp - the exported symbol; gpu_common makes the table of the classes in driver.cpp.
#include "backends/gpu_common/plugin.h"

#if defined(__aarch64__)
#define VULKAN_TARGET "aarch64-linux-gnu"
#else
#define VULKAN_TARGET "x86_64-linux-gnu"
#endif
TN_COLD({sizeof(tn_cold), 1, TN_ABI_CURRENT, TN_ABI_CURRENT, "dev.tenon.vulkan", "0.1.0", VULKAN_TARGET, {0, 0, 0, 0}, 0, 1, {"libvulkan.so.1"}});

extern "C" TN_EXPORT const tn_plugin* tn_plugin_query(uint32_t abi, const tn_host*) { return tenon::gpu::plugin_table(abi); }
