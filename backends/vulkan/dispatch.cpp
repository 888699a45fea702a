// backends/vulkan/dispatch.cpp - launches of a stream; see stream.h.
#include <cstring>

#include "backends/vulkan/status.h"
#include "backends/vulkan/stream.h"

namespace tenon::vulkan {
namespace {

constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
constexpr VkAccessFlags kShader = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;

unsigned long long ull(uint64_t n) { return n; }

}  // namespace

tn_status Stream::write_params(const gpu::Dispatch& d, VkDescriptorBufferInfo* out, tn_diag* diag) {
  Room room;
  if (tn_status s = this->room(d.param_bytes, gpu_->physical.caps.binding_align, &room, diag); s != TN_OK) return s;
  std::memcpy(room.at(), d.params, d.param_bytes);
  *out = {room.slab->block->buffer, room.offset, d.param_bytes};
  if (tn_status s = begin(diag); s != TN_OK) return s;
  hold(room.slab);
  return TN_OK;
}

tn_status Stream::bind(const Pipeline& kernel, const gpu::Dispatch& d, VkDescriptorSet* out, tn_diag* diag) {
  const uint32_t n = kernel.n_bindings();
  VkDescriptorBufferInfo ranges[gpu::kMostBindings];
  VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
  for (uint32_t i = 0; i < d.n_bindings; ++i) {
    const gpu::Binding& b = d.bindings[i];
    const auto* block = reinterpret_cast<const Block*>(b.handle);
    const bool empty = block == nullptr || b.bytes == 0;  // Vulkan has no ranges of 0 bytes
    const uint32_t at = i < kernel.n_buffers ? i : n - 1;
    if (!empty && (b.offset > block->bytes || b.bytes > block->bytes - b.offset))
      return fail(diag, TN_E_ARG, kErrArgument, VK_SUCCESS, "vulkan: %.40s: a binding leaves its memory\nwhy: buffer %u: %llu bytes from %llu on, of %llu\ntry: bind what the memory has", kernel.name.c_str(), i,
                  ull(b.bytes), ull(b.offset), ull(block->bytes));
    // Up to 3 bytes more than asked, so that a kernel may read whole words: alloc() leaves that room after every buffer.
    ranges[at] = empty ? VkDescriptorBufferInfo{gpu_->nothing->buffer, 0, gpu_->nothing->bytes} : VkDescriptorBufferInfo{block->buffer, b.offset, (b.bytes + 3) / 4 * 4};
  }
  if (kernel.params_in_buffer)
    if (tn_status s = write_params(d, &ranges[kernel.n_buffers], diag); s != TN_OK) return s;
  std::shared_ptr<SetPools::Pool> pool;
  if (tn_status s = pools_.take(kernel.set_layout, n, out, &pool, diag); s != TN_OK) return s;
  hold(std::move(pool));
  write.dstSet = *out;
  write.descriptorCount = n;  // runs on over the bindings that follow, which are alike
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  write.pBufferInfo = ranges;
  if (n != 0) gpu_->fn.vkUpdateDescriptorSets(gpu_->device, 1, &write, 0, nullptr);
  return TN_OK;
}

tn_status Stream::dispatch(const gpu::Dispatch& d, tn_diag* diag) {
  const Pipeline& kernel = *static_cast<const Pipeline*>(d.kernel);
  const uint32_t expected = kernel.n_buffers + (kernel.can_fail ? 1 : 0);
  if (d.n_bindings != expected || d.param_bytes != kernel.param_bytes || kernel.n_bindings() > gpu::kMostBindings)
    return fail(diag, TN_E_ARG, kErrArgument, VK_SUCCESS, "vulkan: %.40s: operands do not fit the kernel\nwhy: %u bindings and %u parameter bytes given, %u and %u needed\ntry: pass what its spec states", kernel.name.c_str(),
                d.n_bindings, d.param_bytes, expected, kernel.param_bytes);
  const VkPhysicalDeviceLimits& limits = gpu_->physical.limits;
  for (int i = 0; i < 3; ++i) {
    if (d.groups[i] == 0) return TN_OK;
    if (d.groups[i] > limits.maxComputeWorkGroupCount[i])
      return fail(diag, TN_E_LIMIT, kErrArgument, VK_SUCCESS, "vulkan: %.40s: too many work-groups\nwhy: %u on axis %d, the device takes %u\ntry: split the launch", kernel.name.c_str(), d.groups[i], i, limits.maxComputeWorkGroupCount[i]);
  }
  if (tn_status s = begin(diag); s != TN_OK) return s;
  VkDescriptorSet set = VK_NULL_HANDLE;
  if (tn_status s = bind(kernel, d, &set, diag); s != TN_OK) return s;
  const VkCommandBuffer commands = recording_->commands;
  barrier(kCompute, kShader);
  gpu_->fn.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline);
  gpu_->fn.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.layout, 0, 1, &set, 0, nullptr);
  if (d.param_bytes != 0 && !kernel.params_in_buffer) gpu_->fn.vkCmdPushConstants(commands, kernel.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, d.param_bytes, d.params);
  gpu_->fn.vkCmdDispatch(commands, d.groups[0], d.groups[1], d.groups[2]);
  ++recording_->n_commands;
  return submit_if_long(diag);
}

}  // namespace tenon::vulkan
