#include "loader/probe/gather.h"

#include <algorithm>

#include "kernel/fp_env.h"

namespace tenon::loader {
namespace {

using kernel::call_plugin;

// Bound to a kind that the plugin itself offers: of no use without one of its devices.
bool for_own_devices(const tn_kernel_info& kernel, const std::vector<tn_device_info>& own) {
  for (uint32_t i = 0; i < kernel.n_cons; ++i) {
    const tn_constraint& c = kernel.cons[i];
    if (c.kind == TN_NEED_DEVICE_KIND && std::any_of(own.begin(), own.end(), [&](const tn_device_info& d) { return d.kind == c.arg; })) return true;
  }
  return false;
}

std::vector<tn_device_info> ask_devices(const kernel::PluginSlot& slot) {
  std::vector<tn_device_info> infos(kReportDevices);
  for (tn_device_info& info : infos) info.size = sizeof info;
  uint32_t n = 0;
  if (slot.table->devices == nullptr || call_plugin(slot.table->devices, slot.instance, infos.data(), uint32_t{sizeof infos[0]}, kReportDevices, &n, nullptr) != TN_OK) n = 0;
  infos.resize(std::min(n, kReportDevices));
  for (tn_device_info& info : infos) info.next = nullptr, info.mem_free_bytes = 0;
  return infos;
}

}  // namespace

PluginReport gather_report(const kernel::PluginSlot& slot) {
  PluginReport report;
  report.offers = slot.table->devices != nullptr;
  report.devices = ask_devices(slot);
  uint32_t stride = 0, n = 0;
  const tn_kernel_info* kernels = nullptr;
  if (slot.table->kernels != nullptr && call_plugin(slot.table->kernels, slot.instance, &kernels, &stride, &n, nullptr) == TN_OK) {
    report.kernels = n;
    for (uint32_t i = 0; i < n; ++i) {
      const auto* kernel = reinterpret_cast<const tn_kernel_info*>(reinterpret_cast<const char*>(kernels) + size_t{i} * stride);
      if (!for_own_devices(*kernel, report.devices)) ++report.for_others;
    }
  }
  const tn_op_def* ops = nullptr;
  if (slot.table->ops != nullptr) call_plugin(slot.table->ops, slot.instance, &ops, &stride, &report.ops, nullptr);
  return report;
}

}  // namespace tenon::loader
