// backends/vulkan/descriptors.cpp - see descriptors.h.
#include "backends/vulkan/descriptors.h"

namespace tenon::vulkan {
namespace {

constexpr uint32_t kSets = 128, kDescriptors = 8 * kSets;  // of one pool

}  // namespace

SetPools::~SetPools() {
  for (const auto& pool : pools_) gpu_->fn.vkDestroyDescriptorPool(gpu_->device, pool->handle, nullptr);
}

tn_status SetPools::next_pool(tn_diag* diag) {
  current_.reset();
  for (const auto& pool : pools_)
    if (pool.use_count() == 1) {  // no batch holds it
      if (tn_status s = gpu_->check(gpu_->fn.vkResetDescriptorPool(gpu_->device, pool->handle, 0), "vkResetDescriptorPool", diag); s != TN_OK) return s;
      current_ = pool, sets_left_ = kSets, descriptors_left_ = kDescriptors;
      return TN_OK;
    }
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kDescriptors};
  VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  info.maxSets = kSets;
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  auto pool = std::make_shared<Pool>();
  if (tn_status s = gpu_->check(gpu_->fn.vkCreateDescriptorPool(gpu_->device, &info, nullptr, &pool->handle), "vkCreateDescriptorPool", diag); s != TN_OK) return s;
  pools_.push_back(pool);
  current_ = pool, sets_left_ = kSets, descriptors_left_ = kDescriptors;
  return TN_OK;
}

tn_status SetPools::take(VkDescriptorSetLayout layout, uint32_t n_bindings, VkDescriptorSet* out, std::shared_ptr<Pool>* pool, tn_diag* diag) {
  if (current_ == nullptr || sets_left_ == 0 || descriptors_left_ < n_bindings)
    if (tn_status s = next_pool(diag); s != TN_OK) return s;
  VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  info.descriptorPool = current_->handle;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &layout;
  if (tn_status s = gpu_->check(gpu_->fn.vkAllocateDescriptorSets(gpu_->device, &info, out), "vkAllocateDescriptorSets", diag); s != TN_OK) return s;
  --sets_left_, descriptors_left_ -= n_bindings;
  *pool = current_;
  return TN_OK;
}

}  // namespace tenon::vulkan
