// backends/vulkan/timeline.cpp - see timeline.h.
#include "backends/vulkan/timeline.h"

#include <algorithm>
#include <chrono>

#include "backends/vulkan/status.h"

namespace tenon::vulkan {
namespace {

using Clock = std::chrono::steady_clock;

// A wait without end is cut into pieces, so that a loss which another thread was told of ends it.
constexpr uint64_t kPieceNs = 1000000000;

}  // namespace

tn_status Timeline::make(std::shared_ptr<Gpu> gpu, std::shared_ptr<Timeline>* out, tn_diag* diag) {
  std::shared_ptr<Timeline> self(new Timeline(std::move(gpu)));
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  info.pNext = &type;
  Gpu& g = *self->gpu;
  if (tn_status s = g.check(g.fn.vkCreateSemaphore(g.device, &info, nullptr, &self->semaphore), "vkCreateSemaphore", diag); s != TN_OK) return s;
  *out = std::move(self);
  return TN_OK;
}

Timeline::~Timeline() {
  if (semaphore != VK_NULL_HANDLE) gpu->fn.vkDestroySemaphore(gpu->device, semaphore, nullptr);
}

tn_status Timeline::reached(uint64_t* value, tn_diag* diag) {
  if (tn_status s = gpu->alive(diag); s != TN_OK) return s;
  return gpu->check(gpu->fn.vkGetSemaphoreCounterValue(gpu->device, semaphore, value), "vkGetSemaphoreCounterValue", diag);
}

tn_status Timeline::wait(uint64_t value, uint64_t timeout_ns, tn_diag* diag) {
  const Clock::time_point start = Clock::now();
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore;
  info.pValues = &value;
  uint64_t now = 0;
  for (;;) {
    if (tn_status s = reached(&now, diag); s != TN_OK) return s;
    if (now >= value) break;
    const uint64_t spent = static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - start).count());
    if (timeout_ns != TN_FOREVER && spent >= timeout_ns)
      return fail(diag, TN_E_TIMEOUT, kErrTimeout, VK_TIMEOUT, "vulkan: work is not done in time\nwhy: step %llu of the stream after %llu ns, %llu is waited for\ntry: wait longer",
                  static_cast<unsigned long long>(now), static_cast<unsigned long long>(timeout_ns), static_cast<unsigned long long>(value));
    const uint64_t left = timeout_ns == TN_FOREVER ? kPieceNs : std::min(kPieceNs, timeout_ns - spent);
    if (tn_status s = gpu->check(gpu->fn.vkWaitSemaphores(gpu->device, &info, left), "vkWaitSemaphores", diag); s != TN_OK) return s;
  }
  gpu->landings.settle(stream, value);
  return TN_OK;
}

}  // namespace tenon::vulkan
