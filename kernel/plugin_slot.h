// kernel/plugin_slot.h - what the loader hands to the kernel: one slot per plugin file or linked plugin.
//
// The loader finds and checks a file, makes a slot (which carries the tn_host the plugin will be given), opens the
// library, calls tn_plugin_query, validates the table and calls Runtime::attach. Every file looked at keeps its slot, in
// search order, as its verdict; only attached ones have an instance. A slot may be known before it is attached: its devices are
// listed from what the plugin reported when it was last tried, and none of its code runs until one of them is asked for.
// Owns: the runtime owns slots; a slot owns its library handle (dropped after close()).
// Threads: slots are made, attached and woken under the runtime's plugin lock; `known` is read without it.
#pragma once
#include <tenon/plugin.h>
#include <tenon/runtime.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace tenon::kernel {

class Runtime;

// Behind tn_host.ctx: whose call it is, and what that plugin holds.
struct HostContext {
  Runtime* runtime = nullptr;
  struct PluginSlot* slot = nullptr;
  std::atomic<int64_t> live_allocs{0}, live_bytes{0};
};

struct PluginSlot {
  PluginSlot() = default;
  // Unmapped while its host still answers. Who kept the host beyond that finds no function in it: a trial in a child process
  // then meets the fault before a program does at its end.
  ~PluginSlot() {
    library.reset();
    for (volatile char* p = reinterpret_cast<char*>(&host); p != reinterpret_cast<char*>(&host + 1); ++p) *p = 0;
  }
  PluginSlot(const PluginSlot&) = delete;
  PluginSlot& operator=(const PluginSlot&) = delete;

  tn_plugin_entry entry{};            // the verdict; entry.code 0 = in use
  HostContext context;
  tn_host host{};                     // filled by Runtime::add_slot
  std::shared_ptr<void> library;      // keeps the file mapped, and the table copy alive
  const tn_plugin* table = nullptr;   // validated by the loader: size, abi, required entries, pairs that belong together
  tn_instance* instance = nullptr;    // after open()
  bool attached = false;
  std::atomic<bool> known{false};         // not attached yet; wake() does it
  // Opens the plugin, leaves its verdict in `entry` and gives its cause, empty when it is in use. Called once, never throws.
  std::function<std::string()> wake;
  std::atomic<int64_t> live_kernels{0};  // prepared kernels not yet retired
};

}  // namespace tenon::kernel
