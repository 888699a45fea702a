#include "kernel/device.h"

#include <tenon/caps.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernel/fp_env.h"
#include "kernel/runtime.h"
#include "kernel/status.h"

namespace tenon::kernel {
namespace {

constexpr uint32_t kMostCaps = 256;

// The type that caps.def gives the key; TN_NONE for a vendor's own.
uint32_t type_of(uint32_t key) {
  switch (key) {
#define X(NAME, name, number, type, unit, since) case number: return type;
    TN_CAPS(X)
#undef X
    default: return TN_NONE;
  }
}

// What cannot be true is left out, as what is not known: nobody can tell what was meant.
bool sound(const tn_cap& cap) {
  if (cap.provenance < TN_FROM_MEASURED || cap.provenance > TN_FROM_GUESS || cap.type > TN_CAP_TEXT) return false;
  if (const uint32_t type = type_of(cap.key); type != TN_NONE && type != cap.type) return false;
  if (cap.type == TN_CAP_F64) return std::isfinite(cap.v.f) && (cap.v.f >= 0 || type_of(cap.key) == TN_NONE);
  return cap.type != TN_CAP_TEXT || cap.v.s != nullptr;
}

}  // namespace

const tn_cap* Device::find_cap(uint32_t key) const {
  for (const tn_cap& cap : caps)
    if (cap.key == key) return &cap;
  return nullptr;
}

tn_status Device::refuse(tn_diag* diag) const {
  return fail(diag, TN_E_UNAVAILABLE, id(kDevice, 1), "device %s cannot be used\nwhy: %.100s\ntry: `tenon devices` lists usable ones", name, cause);
}

tn_status Device::open(tn_diag* diag) {
  // In this order: a plugin that failed to open leaves its devices' verdicts before it stops being known.
  if (plugin->known.load(std::memory_order_acquire) && !verdict) runtime->wake(this);
  if (verdict) return refuse(diag);
  std::lock_guard lock(open_mutex);
  if (!opened) open_status = open_now(&open_diag);
  opened = true;
  if (open_status && diag) *diag = open_diag;
  return open_status;
}

void Device::read_caps() {
  const tn_plugin* table = plugin->table;
  uint32_t n = 0;
  if (!table->caps || call_plugin(table->caps, plugin->instance, plugin_device, nullptr, 0, &n, nullptr) != TN_OK) return;
  caps.resize(std::min(n, kMostCaps));
  n = 0;
  if (!caps.empty() && call_plugin(table->caps, plugin->instance, plugin_device, caps.data(), static_cast<uint32_t>(caps.size()), &n, nullptr) != TN_OK) n = 0;
  caps.resize(std::min<size_t>(caps.size(), n));
  std::erase_if(caps, [](const tn_cap& cap) { return !sound(cap); });
  for (size_t i = 0; i < caps.size(); ++i)  // a key has one value: the first
    caps.erase(std::remove_if(caps.begin() + static_cast<ptrdiff_t>(i) + 1, caps.end(), [key = caps[i].key](const tn_cap& c) { return c.key == key; }), caps.end());
}

void Device::lose(const tn_diag* words) {
  std::lock_guard lock(open_mutex);
  if (!opened || open_status) return;  // the first cause stays
  open_status = TN_E_DEVICE_LOST;
  lost = true;
  std::string said = words && words->msg[0] ? words->msg : "its driver said no more";
  said.resize(std::min(said.find("\ntry: "), said.size()));  // its advice may be cut; ours follows
  if (const size_t why = said.find("\nwhy: "); why != std::string::npos) said.replace(why, 6, ": ");
  said.resize(std::min(said.find('\n'), said.size()));
  fail(&open_diag, TN_E_DEVICE_LOST, id(kDevice, 1), "device %s cannot be used\nwhy: it was lost: %.125s\ntry: `tenon devices` lists usable ones", name, said.c_str());
}

void Device::say_if_lost(uint32_t* out_verdict, char* out_cause, size_t bytes) {
  if (!lost) return;  // without the lock, which is held while a driver starts
  std::lock_guard lock(open_mutex);
  if (!opened || open_status != TN_E_DEVICE_LOST || verdict) return;
  *out_verdict = static_cast<uint32_t>(-TN_E_DEVICE_LOST);
  const std::string text = open_diag.msg;
  const size_t why = text.find("\nwhy: ");
  std::snprintf(out_cause, bytes, "%s", why == std::string::npos ? text.c_str() : text.substr(why + 6, text.find('\n', why + 6) - why - 6).c_str());
}

tn_status Device::open_now(tn_diag* diag) {
  const tn_plugin* table = plugin->table;
  if (tn_status s = call_plugin(table->device_open, plugin->instance, plugin_device, nullptr, &handle, diag)) return s;
  read_caps();
  tn_space_info spaces[8]{};
  for (tn_space_info& s : spaces) s.size = sizeof s;
  uint32_t n = 0;
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
  take_rates(this);
  memory.open(this);
  if (runtime->memory_limit()) memory.set_limit(runtime->memory_limit());
  return TN_OK;
}

}  // namespace tenon::kernel
