#include "tools/tenon/op/captured.h"

#include <tenon/plugin.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>

#include "tools/tenon/common/context.h"

// What the core holds of one captured plugin.
struct tn_instance {
  std::vector<tn_device_info> devices;
  std::vector<std::vector<tn_cap>> caps;
  std::vector<const tenon::cli::DeviceRecord*> records;
  std::vector<tn_kernel_info> kernels;
  std::deque<tn_kernel_packed> packed;
};
struct tn_device {
  const tenon::cli::DeviceRecord* record;
};

namespace tenon::cli {
namespace {

std::unique_ptr<tn_instance> next_to_open;  // tn_plugin_link takes no context; one thread

tn_status absent(tn_diag* diag) {
  if (diag) {
    *diag = {};
    diag->size = sizeof *diag;
    diag->status = TN_E_UNAVAILABLE;
    diag->len = static_cast<uint32_t>(std::snprintf(diag->msg, sizeof diag->msg, "this device is a record of a machine elsewhere"));
  }
  return TN_E_UNAVAILABLE;
}

template <class T>
void give(const std::vector<T>& list, T* out, uint32_t stride, uint32_t cap, uint32_t* out_n) {
  *out_n = static_cast<uint32_t>(list.size());
  for (uint32_t i = 0; i < std::min<uint32_t>(cap, *out_n); ++i)
    std::memcpy(reinterpret_cast<char*>(out) + size_t{stride} * i, &list[i], std::min<size_t>(stride, sizeof(T)));
}

tn_status open(const tn_host*, tn_instance** out, tn_diag* diag) {
  if (!next_to_open) return absent(diag);
  *out = next_to_open.release();
  return TN_OK;
}
tn_status quiesce(tn_instance*, uint64_t, uint32_t* out_live, tn_diag*) { return *out_live = 0, TN_OK; }
void close(tn_instance* self) { delete self; }
tn_status devices(tn_instance* self, tn_device_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag*) { return give(self->devices, out, stride, cap, out_n), TN_OK; }
tn_status caps(tn_instance* self, uint32_t index, tn_cap* out, uint32_t cap, uint32_t* out_n, tn_diag*) {
  return give(self->caps[index], out, sizeof(tn_cap), cap, out_n), TN_OK;
}
tn_status device_open(tn_instance* self, uint32_t index, const tn_ext*, tn_device** out, tn_diag*) { return *out = new tn_device{self->records[index]}, TN_OK; }
void device_close(tn_device* device) { delete device; }
tn_status spaces(tn_device* device, tn_space_info* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag*) { return give(device->record->spaces, out, stride, cap, out_n), TN_OK; }
tn_status alloc(tn_device*, uint32_t, uint64_t, uint64_t, tn_buffer*, tn_diag* diag) { return absent(diag); }
void free_nothing(tn_device*, const tn_buffer*) {}
tn_status copy(tn_dev_queue*, const tn_view*, const tn_view*, tn_diag* diag) { return absent(diag); }
tn_status queue_open(tn_device*, uint32_t, int32_t, tn_dev_queue**, tn_diag* diag) { return absent(diag); }
void queue_close(tn_dev_queue*) {}
tn_status kernels(tn_instance* self, const tn_kernel_info** out, uint32_t* out_stride, uint32_t* out_n, tn_diag*) {
  *out = self->kernels.data(), *out_stride = sizeof(tn_kernel_info), *out_n = static_cast<uint32_t>(self->kernels.size());
  return TN_OK;
}

tn_status prepare(tn_instance*, const tn_device_ref*, const tn_op*, const tn_kernel_plan**, tn_diag* diag) { return absent(diag); }
void retire(tn_instance*, const tn_device_ref*, const tn_kernel_plan*) {}
tn_status packed_bytes(tn_instance*, const tn_device_ref*, const tn_op*, uint64_t*, tn_diag* diag) { return absent(diag); }
tn_status pack(tn_instance*, const tn_device_ref*, const tn_op*, const tn_view*, const tn_view*, tn_dev_queue*, tn_diag* diag) { return absent(diag); }

const tn_plugin* query(uint32_t abi, const tn_host*) {
  static const tn_plugin table = [] {
    tn_plugin t{};
    t.size = sizeof t, t.abi = TN_ABI_CURRENT;
    t.open = open, t.quiesce = quiesce, t.close = close;
    t.devices = devices, t.caps = caps, t.device_open = device_open, t.device_close = device_close;
    t.spaces = spaces, t.alloc = alloc, t.free = free_nothing, t.copy = copy, t.queue_open = queue_open, t.queue_close = queue_close;
    t.kernels = kernels;
    return t;
  }();
  return abi == table.abi ? &table : nullptr;
}

void add_device(tn_instance* self, const DeviceRecord& d) {
  tn_device_info info = d.info;
  info.size = sizeof info, info.next = nullptr, info.index = static_cast<uint32_t>(self->devices.size()), info.n_spaces = static_cast<uint32_t>(d.spaces.size());
  info.flags |= TN_DEVICE_INLINE;  // needs no timelines; no condition looks at flags
  std::memset(info.uuid, 0, sizeof info.uuid);
  std::snprintf(info.name, sizeof info.name, "%s", d.hardware.c_str());
  std::snprintf(info.driver, sizeof info.driver, "%s", d.driver.c_str());
  std::vector<tn_cap> list;
  for (const CapRecord& c : d.caps) {
    list.push_back(c.cap);
    if (c.cap.type == TN_CAP_TEXT) list.back().v.s = c.text.c_str();
  }
  self->devices.push_back(info), self->caps.push_back(std::move(list)), self->records.push_back(&d);
}

void add_kernel(tn_instance* self, const KernelRecord& k) {
  tn_kernel_info row{};
  row.size = sizeof row, row.flags = k.flags, row.name = k.name.c_str();
  row.op_id = k.op_id, row.op_min = k.op_min, row.op_max = k.op_max, row.tier = k.tier;
  row.cons = k.needs.data(), row.n_cons = static_cast<uint32_t>(k.needs.size()), row.inplace_mask = k.inplace_mask;
  row.prepare = prepare, row.retire = retire;
  if (!k.layout.empty()) {
    tn_kernel_packed p{};
    p.ext.size = sizeof p, p.ext.id = TN_EXT_KERNEL_PACKED;
    p.operand = k.packed_operand, p.layout = k.layout.c_str(), p.bytes = packed_bytes, p.pack = pack;
    self->packed.push_back(p);
    row.next = &self->packed.back().ext;
  }
  self->kernels.push_back(row);
}

// Rows are listed by plugin id and name: ids that sort as those of the machine, and end alike, so that devices have their names.
std::string link_id(size_t rank, const std::string& id) {
  char head[32];
  std::snprintf(head, sizeof head, "captured.%04zu.", rank);
  const size_t dot = id.rfind('.');
  return head + id.substr(dot == std::string::npos ? 0 : dot + 1, 40);
}

}  // namespace

CapturedRuntime::CapturedRuntime(const Machine& machine) : machine_(machine), slots_(machine.plugins.size(), TN_NONE) {
  for (const char* variable : {"TENON_DEVICES", "TENON_CONFIG"}) unsetenv(variable);  // they are about this machine's devices
  tn_runtime_options options{};
  options.size = sizeof options, options.flags = TN_RT_NO_SEARCH, options.threads = 1;
  tn_diag diag{};
  diag.size = sizeof diag;
  if (tn_status s = tn_runtime_create(&options, &runtime_, &diag)) throw_diag(diag, s);
  if (tn_status s = tn_plugin_unload(runtime_, 0, 0, &diag)) throw_diag(diag, s);  // the reference plugin here: the machine's own is recorded
  std::vector<size_t> order(machine.plugins.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return machine.plugins[a].id < machine.plugins[b].id; });
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const size_t at = order[rank];
    auto instance = std::make_unique<tn_instance>();
    for (const DeviceRecord& d : machine.devices)
      if (d.plugin == at) add_device(instance.get(), d);
    for (const KernelRecord& k : machine.kernels)
      if (k.plugin == at) add_kernel(instance.get(), k);
    if (instance->devices.empty() && instance->kernels.empty()) continue;
    next_to_open = std::move(instance);
    if (tn_status s = tn_plugin_link(runtime_, link_id(rank, machine.plugins[at].id).c_str(), query, &slots_[at], &diag)) throw_diag(diag, s);
  }
}

CapturedRuntime::~CapturedRuntime() {
  tn_diag ignored{};
  ignored.size = sizeof ignored;
  tn_runtime_destroy(runtime_, 0, &ignored);
}

uint32_t CapturedRuntime::device(const DeviceRecord& record) const {
  size_t number = 0;  // among the devices of its plugin
  for (const DeviceRecord& d : machine_.devices) {
    if (&d == &record) break;
    number += d.plugin == record.plugin;
  }
  for (const tn_device_entry& e : device_entries(runtime_))
    if (e.plugin == slots_[record.plugin] && number-- == 0) return e.device;
  return 0;
}

const PluginRecord* CapturedRuntime::plugin(uint32_t index) const {
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i] == index) return &machine_.plugins[i];
  return nullptr;
}

const KernelRecord* CapturedRuntime::kernel_of(const tn_candidate& row) const {
  if (row.kind != TN_ROW_KERNEL) return nullptr;
  for (const KernelRecord& k : machine_.kernels)
    if (slots_[k.plugin] == row.plugin && k.name == row.kernel) return &k;
  return nullptr;
}

std::string CapturedRuntime::plugin_of(const tn_candidate& row) const {
  if (row.kind == TN_ROW_EXPAND) return "(parts)";
  const PluginRecord* found = plugin(row.plugin);
  return found ? found->id : "-";
}

}  // namespace tenon::cli
