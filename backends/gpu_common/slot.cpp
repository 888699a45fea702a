// backends/gpu_common/slot.cpp - a device of the instance: opened once for all who open it, lost once for good.
#include "backends/gpu_common/state.h"

namespace tenon::gpu {

tn_status Slot::alive(tn_diag* diag) const {
  if (!lost.load(std::memory_order_acquire)) return TN_OK;
  if (diag != nullptr) *diag = loss;
  return TN_E_DEVICE_LOST;
}

void Slot::lose(const tn_diag* words) {
  const std::lock_guard lock(mutex);
  if (!lost.load()) {
    if (words != nullptr && words->len != 0) loss = *words, loss.status = TN_E_DEVICE_LOST;
    else report(&loss, TN_E_DEVICE_LOST, kErrLost, "%s:%u was lost\nwhy: the driver says so, without words\ntry: go on with another device, or load the plugin again", owner->name, index);
    lost.store(true, std::memory_order_release);
  }
  for (tn_dev_timeline* t : timelines) t->changed.notify_all();  // they look up from time to time besides
}

tn_status Slot::told(Device& device, tn_status status, const tn_diag& words, tn_diag* diag) {
  if (status == TN_OK) return status;
  if (status == TN_E_DEVICE_LOST) return lose(&words), alive(diag);
  if (diag != nullptr) *diag = words;
  if (status == TN_E_TIMEOUT) return status;
  tn_diag said{};
  if (device.health(&said) == TN_E_DEVICE_LOST) lose(&said);
  return status;
}

tn_status Slot::open(std::shared_ptr<Opened>* out, tn_diag* diag) {
  const std::lock_guard lock(mutex);
  if ((*out = opened.lock()) != nullptr) return TN_OK;
  auto made = std::make_shared<Opened>();
  if (tn_status s = owner->driver->open_device(index, &made->device, diag); s != TN_OK) return s;
  made->kernels = std::make_unique<KernelCache>(*made->device, *owner->store);
  opened = made;
  *out = std::move(made);
  return TN_OK;
}

}  // namespace tenon::gpu
