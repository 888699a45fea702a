// backends/vulkan/gpu.cpp - see gpu.h.
#include "backends/vulkan/gpu.h"

#include <algorithm>

#include "backends/vulkan/status.h"

namespace tenon::vulkan {

tn_status Gpu::create(tn_diag* diag) {
  Features present, wanted;
  present.link(physical.extensions);
  instance->fn.vkGetPhysicalDeviceFeatures2(physical.handle, &present.core);
  wanted.link(physical.extensions);
  wanted.take_useful(present);
  std::vector<float> priorities(physical.n_queues, 0.5f);
  if (physical.n_queues > 1) priorities.back() = 1.0f;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = physical.queue_family;
  queue.queueCount = physical.n_queues;
  queue.pQueuePriorities = priorities.data();
  std::vector<const char*> extensions;
  for (const char* name : {VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME})
    if (physical.has(name)) extensions.push_back(name);
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = &wanted.core;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  return translate(diag, instance->fn.vkCreateDevice(physical.handle, &info, nullptr, &device), "vkCreateDevice");
}

tn_status Gpu::open(std::shared_ptr<Instance> instance, const Physical& physical, std::shared_ptr<Gpu>* out, tn_diag* diag) {
  std::shared_ptr<Gpu> self(new Gpu(std::move(instance), physical));
  if (tn_status s = self->create(diag); s != TN_OK) return s;
#define VULKAN_FIND(name) self->fn.name = reinterpret_cast<PFN_##name>(self->instance->fn.vkGetDeviceProcAddr(self->device, #name));
  VULKAN_DEVICE_FUNCTIONS(VULKAN_FIND)
  if (self->physical.has(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) { VULKAN_HOST_IMPORT_FUNCTIONS(VULKAN_FIND) }
#undef VULKAN_FIND
  for (uint32_t i = 0; i < physical.n_queues; ++i) {
    auto queue = std::make_unique<Queue>();
    self->fn.vkGetDeviceQueue(self->device, physical.queue_family, i, &queue->handle);
    queue->urgent = physical.n_queues > 1 && i + 1 == physical.n_queues;
    self->queues.push_back(std::move(queue));
  }
  VkPipelineCacheCreateInfo cache{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  if (tn_status s = self->check(self->fn.vkCreatePipelineCache(self->device, &cache, nullptr, &self->cache), "vkCreatePipelineCache", diag); s != TN_OK) return s;
  self->memory = std::make_unique<Allocator>(self->fn, self->device, self->physical);
  self->staging = std::make_unique<Staging>(self->memory.get(), self->instance->settings.staging_bytes);
  if (tn_status s = self->memory->alloc(256, 256, MemoryKind::Device, &self->nothing, diag); s != TN_OK) return s;
  *out = std::move(self);
  return TN_OK;
}

Gpu::~Gpu() {
  if (device == VK_NULL_HANDLE) return;
  if (fn.vkDeviceWaitIdle != nullptr) fn.vkDeviceWaitIdle(device);
  staging.reset();
  memory.reset();
  if (cache != VK_NULL_HANDLE) fn.vkDestroyPipelineCache(device, cache, nullptr);
  if (fn.vkDestroyDevice != nullptr) fn.vkDestroyDevice(device, nullptr);
}

tn_status Gpu::check(VkResult result, const char* call, tn_diag* diag) {
  if (result >= 0) return TN_OK;
  tn_diag local;
  const tn_status s = translate(&local, result, call);
  if (s == TN_E_DEVICE_LOST) {
    const std::lock_guard lock(lost_mutex_);
    if (!lost_.load()) {
      loss_ = local;
      lost_.store(true);
      instance->log(TN_LOG_ERROR, std::string(physical.facts.info.name) + ": " + local.msg);
    }
  }
  if (diag != nullptr) *diag = local;
  return s;
}

tn_status Gpu::alive(tn_diag* diag) const {
  if (!lost_.load(std::memory_order_relaxed)) return TN_OK;
  const std::lock_guard lock(lost_mutex_);
  if (diag != nullptr) *diag = loss_;
  return TN_E_DEVICE_LOST;
}

Queue* Gpu::choose_queue(int32_t priority) {
  const bool urgent = priority > 0;
  const bool exists = std::any_of(queues.begin(), queues.end(), [urgent](const auto& q) { return q->urgent == urgent; });
  Queue* best = nullptr;
  for (const auto& q : queues)
    if ((!exists || q->urgent == urgent) && (best == nullptr || q->streams.load() < best->streams.load())) best = q.get();
  best->streams.fetch_add(1);
  return best;
}

}  // namespace tenon::vulkan
