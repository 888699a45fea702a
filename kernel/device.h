// kernel/device.h - one route to a device: what its plugin said, how kernels see it, its memory.
#pragma once
#include <tenon/plugin.h>
#include <tenon/runtime.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "kernel/memory.h"
#include "kernel/plugin_slot.h"
#include "kernel/rates.h"

namespace tenon::kernel {

class Runtime;

struct Device {
  Runtime* runtime = nullptr;
  uint32_t index = 0;             // device id of runtime.h, from 1
  PluginSlot* plugin = nullptr;
  uint32_t plugin_device = 0;     // index within the plugin
  char name[16] = {};             // "cpu:0"
  tn_device_info info{};
  std::vector<tn_cap> caps;
  uint32_t default_space = 0;
  bool inline_work = false;       // TN_DEVICE_INLINE
  std::atomic<uint32_t> verdict{0};  // 0 usable; else a status, negated
  char cause[216] = {};           // written before the verdict
  bool hidden = false;            // the verdict is that of a filter (visible.h); guarded by the runtime's device lock

  // After open().
  std::mutex open_mutex;
  bool opened = false;            // a device whose plugin is loaded again is opened again
  tn_status open_status = TN_OK;
  tn_diag open_diag{};
  tn_device* handle = nullptr;
  tn_device_ref own_ref{};        // for the plugin that offers the device
  tn_device_ref stranger_ref{};   // for kernel packs: no private pointer
  KeptRates kept;                 // survives a reopening: rates are read once
  DeviceRates rates;
  DevicePool memory;

  // Once; later calls give the first answer. Opens the plugin first where it is only known. May block while a driver starts.
  tn_status open(tn_diag* diag);
  tn_status refuse(tn_diag* diag) const;  // TN_E_UNAVAILABLE with the cause of the verdict
  // Its plugin said TN_E_DEVICE_LOST, `cause` with which words (may be NULL): from now on open() answers so, until the plugin is
  // loaded again. Any thread.
  void lose(const tn_diag* cause);
  std::atomic<bool> lost{false};
  void say_if_lost(uint32_t* verdict, char* out_cause, size_t bytes);  // for the list of devices; else leaves both alone
  const tn_device_ref& ref_for(const PluginSlot* kernel_owner) const { return kernel_owner == plugin ? own_ref : stranger_ref; }
  const tn_cap* find_cap(uint32_t key) const;

 private:
  tn_status open_now(tn_diag* diag);
  void read_caps();
};

// Host-visible bytes of a view.
inline char* host_of(const tn_view& v) { return static_cast<char*>(v.host); }

}  // namespace tenon::kernel
