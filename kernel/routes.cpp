// kernel/routes.cpp - the runtime's list of devices: those of plugins in use, and those of plugins that are only known.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "kernel/fp_env.h"
#include "kernel/identity.h"
#include "kernel/runtime.h"
#include "kernel/status.h"

namespace tenon::kernel {
namespace {

constexpr uint32_t kMostDevices = 256;

const char* last_part(const char* id) {
  const char* dot = std::strrchr(id, '.');
  return dot ? dot + 1 : id;
}

void name_device(const PluginSlot* slot, uint32_t i, char (&out)[16]) { std::snprintf(out, sizeof out, "%.11s:%hhu", last_part(slot->entry.id), static_cast<unsigned char>(i)); }

void set_verdict(Device* d, tn_status status, const char* cause) {
  if (d->verdict) return;  // readers hold no lock: a cause that is shown stays
  std::snprintf(d->cause, sizeof d->cause, "%s", cause);
  d->verdict.store(static_cast<uint32_t>(-status), std::memory_order_release);
}

}  // namespace

tn_status Runtime::add_devices(PluginSlot* slot, tn_diag* diag) {
  const tn_plugin* table = slot->table;
  std::vector<tn_device_info> infos;
  if (table->devices) {
    uint32_t n = 0;
    if (tn_status s = call_plugin(table->devices, slot->instance, nullptr, sizeof(tn_device_info), 0, &n, diag)) return s;
    if (n > kMostDevices)
      return fail(diag, TN_E_BUG, id(kAbi, 3), "%s reports %u devices\nwhy: at most 256 are believed\ntry: report it to the plugin's author", slot->entry.id, n);
    infos.resize(n);
    for (tn_device_info& info : infos) info.size = sizeof info;
    if (n)
      if (tn_status s = call_plugin(table->devices, slot->instance, infos.data(), sizeof infos[0], n, &n, diag)) return s;
    infos.resize(std::min<size_t>(n, infos.size()));
  }
  std::lock_guard lock(device_mutex_);
  place_devices(slot, infos);
  return TN_OK;
}

void Runtime::add_known(PluginSlot* slot, const std::vector<tn_device_info>& infos) {
  std::lock_guard lock(device_mutex_);
  place_devices(slot, infos);
  slot->known.store(true, std::memory_order_release);
}

void Runtime::forget_known(PluginSlot* slot, const char* cause) {
  std::lock_guard lock(plugin_mutex_);
  give_up(slot, cause);
  slot->known = false;
  slot->wake = nullptr;
}

void Runtime::place_devices(PluginSlot* slot, const std::vector<tn_device_info>& infos) {
  for (uint32_t i = 0; i < infos.size(); ++i) place_device(slot, i, infos[i]);
  for (const auto& d : devices_)
    if (d->plugin == slot && d->plugin_device >= infos.size()) set_verdict(d.get(), TN_E_UNAVAILABLE, "its plugin reports it no more");
  apply_filters();
}

// A plugin that is opened or loaded again gets its devices back: the ids that programs hold, and no growth.
void Runtime::place_device(PluginSlot* slot, uint32_t i, const tn_device_info& told) {
  tn_device_info info = told;
  info.name[sizeof info.name - 1] = info.driver[sizeof info.driver - 1] = '\0';
  if (info.mem_free_bytes > info.mem_total_bytes) info.mem_free_bytes = 0;  // reported nonsense is "unknown"
  if (info.dtype_storage) info.dtype_compute &= info.dtype_storage, info.dtype_matrix &= info.dtype_storage;  // what cannot be stored cannot be computed
  const auto before = std::find_if(devices_.begin(), devices_.end(), [&](const auto& d) { return d->plugin == slot && d->plugin_device == i; });
  if (before != devices_.end() && slot->known && same_report((*before)->info, info)) {
    (*before)->info.mem_free_bytes = info.mem_free_bytes;  // the rest may be read without the lock
    return;
  }
  auto fresh = before == devices_.end() ? std::make_unique<Device>() : nullptr;
  Device* d = fresh ? fresh.get() : before->get();
  if (fresh) {  // never written again: others read these without a lock
    d->runtime = this;
    d->index = static_cast<uint32_t>(devices_.size()) + 1;
    d->plugin = slot;
    d->plugin_device = i;
    name_device(slot, i, d->name);
  }
  d->opened = false;
  d->hidden = false;
  d->caps.clear();
  d->info = info;
  d->inline_work = (d->info.flags & TN_DEVICE_INLINE) != 0;
  d->verdict = 0;  // last: who sees it sees the rest
  judge(d);
  if (fresh) devices_.push_back(std::move(fresh));
}

void Runtime::judge(Device* d) {
  if (d->info.flags & TN_DEVICE_EMULATED && flags_ & TN_RT_NO_EMULATED) set_verdict(d, TN_E_POLICY, "emulated devices are switched off for this runtime");
}

// Devices come and go, and a new route may tell what an old one is: all are judged anew.
void Runtime::apply_filters() {
  const std::vector<std::string> causes = filter_.judge(list_devices(), hidden_);
  for (size_t i = 0; i < devices_.size(); ++i) {
    Device* d = devices_[i].get();
    if (d->hidden == !causes[i].empty()) continue;
    if (d->hidden) d->hidden = false, d->verdict = 0;
    else if (!d->verdict) d->hidden = true, set_verdict(d, TN_E_POLICY, causes[i].c_str());
  }
}

void Runtime::set_filter(const VisibleFilter& filter) {
  std::lock_guard lock(device_mutex_);
  filter_ = filter;
  apply_filters();
}

void Runtime::hide(const HiddenDevice& device) {
  std::lock_guard lock(device_mutex_);
  hidden_.push_back(device);
  apply_filters();
}

bool Runtime::filter_means(const PluginSlot* slot, const std::vector<tn_device_info>& infos) {
  std::lock_guard lock(device_mutex_);
  for (uint32_t i = 0; i < infos.size(); ++i) {
    char name[16];
    name_device(slot, i, name);
    if (filter_.means(name, infos[i])) return true;
  }
  return false;
}

tn_status Runtime::check_filter(tn_diag* diag) {
  std::lock_guard lock(device_mutex_);
  return filter_.check(list_devices(), diag);
}

void Runtime::give_up(PluginSlot* slot, const char* cause) {
  std::lock_guard lock(device_mutex_);
  for (const auto& d : devices_)
    if (d->plugin == slot) set_verdict(d.get(), TN_E_UNAVAILABLE, cause);
}

void Runtime::wake(PluginSlot* slot) {
  const auto open = std::move(slot->wake);
  slot->wake = nullptr;
  const std::string cause = open ? open() : "nothing opens its plugin";
  if (!cause.empty()) give_up(slot, cause.c_str());
  slot->known.store(false, std::memory_order_release);
}

void Runtime::wake(const Device* device) {
  std::lock_guard lock(plugin_mutex_);
  if (device->plugin->known) wake(device->plugin);
  for (size_t i = 0; i < slots_.size(); ++i) {
    PluginSlot* slot = slots_[i].get();
    if (!slot->known) continue;
    const std::vector<Device*> all = devices();
    if (std::any_of(all.begin(), all.end(), [&](const Device* d) { return d->plugin == slot && d->info.kind == device->info.kind && !d->verdict; })) wake(slot);
  }
}

Device* Runtime::device(uint32_t index) {
  std::lock_guard lock(device_mutex_);
  return index >= 1 && index <= devices_.size() ? devices_[index - 1].get() : nullptr;
}

std::vector<Device*> Runtime::devices() {
  std::lock_guard lock(device_mutex_);
  std::vector<Device*> out;
  for (auto& d : devices_) out.push_back(d.get());
  return out;
}

std::vector<tn_device_entry> Runtime::device_entries() {
  std::lock_guard lock(device_mutex_);
  return list_devices();
}

std::vector<tn_device_entry> Runtime::list_devices() {
  std::vector<Route> routes;
  for (const auto& d : devices_) routes.push_back({&d->info, d->plugin->entry.index, d->index});
  const std::vector<uint32_t> physical = physical_ids(routes);
  std::vector<tn_device_entry> entries(devices_.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    const Device& d = *devices_[i];
    tn_device_entry& e = entries[i];
    e.size = sizeof e;
    e.device = d.index;
    e.physical = physical[i];
    e.plugin = d.plugin->entry.index;
    e.verdict = d.verdict.load(std::memory_order_acquire);
    std::snprintf(e.name, sizeof e.name, "%s", d.name);
    if (e.verdict) std::snprintf(e.cause, sizeof e.cause, "%s", d.cause);
    devices_[i]->say_if_lost(&e.verdict, e.cause, sizeof e.cause);
    e.info = d.info;
  }
  return entries;
}

}  // namespace tenon::kernel
