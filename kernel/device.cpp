#include "kernel/device.h"

#include <algorithm>
#include <cstring>

#include "kernel/fp_env.h"
#include "kernel/runtime.h"
#include "kernel/status.h"

namespace tenon::kernel {

const tn_cap* Device::find_cap(uint32_t key) const {
  for (const tn_cap& cap : caps)
    if (cap.key == key) return &cap;
  return nullptr;
}

tn_status Device::refuse(tn_diag* diag) const {
  return fail(diag, TN_E_UNAVAILABLE, id(kDevice, 1), "device %s cannot be used\nwhy: %.100s\ntry: `tenon devices` lists usable ones", name, cause);
}

tn_status Device::open(tn_diag* diag) {
  if (verdict) return refuse(diag);
  if (plugin->known.load(std::memory_order_acquire)) {
    runtime->wake(this);
    if (verdict) return refuse(diag);
  }
  {
    std::lock_guard lock(open_mutex);
    if (!opened) open_status = open_now(&open_diag);
    opened = true;
  }
  if (open_status && diag) *diag = open_diag;
  return open_status;
}

tn_status Device::open_now(tn_diag* diag) {
  const tn_plugin* table = plugin->table;
  if (tn_status s = call_plugin(table->device_open, plugin->instance, plugin_device, nullptr, &handle, diag)) return s;
  uint32_t n = 0;
  if (table->caps && call_plugin(table->caps, plugin->instance, plugin_device, nullptr, 0, &n, diag) == TN_OK && n) {
    caps.resize(n);
    call_plugin(table->caps, plugin->instance, plugin_device, caps.data(), n, &n, diag);
    caps.resize(std::min<size_t>(caps.size(), n));
  }
  tn_space_info spaces[8]{};
  for (tn_space_info& s : spaces) s.size = sizeof s;
  n = 0;
  if (table->spaces && call_plugin(table->spaces, handle, spaces, sizeof spaces[0], 8, &n, diag) == TN_OK && n) default_space = spaces[0].id;

  const tn_native* native = nullptr;
  if (table->iface) native = static_cast<const tn_native*>(call_plugin(table->iface, plugin->instance, "tn.native.v1"));
  own_ref.size = sizeof own_ref;
  own_ref.index = index;
  own_ref.kind = info.kind;
  own_ref.info = &info;
  own_ref.native = native;
  own_ref.owner = plugin->instance;
  own_ref.native_kind = native ? native->native_kind : 0;
  own_ref.caps = caps.data();
  own_ref.n_caps = static_cast<uint32_t>(caps.size());
  if (native && native->device) native->device(plugin->instance, handle, &own_ref.native_handle, diag);
  stranger_ref = own_ref;
  own_ref.device = handle;
  memory.open(this);
  if (runtime->memory_limit()) memory.set_limit(runtime->memory_limit());
  return TN_OK;
}

}  // namespace tenon::kernel
