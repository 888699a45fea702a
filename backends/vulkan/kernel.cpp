// backends/vulkan/kernel.cpp - see kernel.h.
#include "backends/vulkan/kernel.h"

#include <cstring>
#include <vector>

#include "backends/vulkan/status.h"

namespace tenon::vulkan {
namespace {

constexpr uint32_t kMagic = 0x07230203;  // first word of every SPIR-V module

// Words, wherever the string keeps its bytes. Empty when it is no module.
std::vector<uint32_t> words_of(const std::string& binary) {
  std::vector<uint32_t> words(binary.size() / 4);
  if (binary.size() % 4 != 0 || words.size() < 5) return {};
  std::memcpy(words.data(), binary.data(), binary.size());
  return words[0] == kMagic ? words : std::vector<uint32_t>{};
}

// What pins the size of sub-groups for one pipeline.
struct SubgroupDemand {
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT size{VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT};
  tn_status apply(const Physical& device, const gpu::KernelSpec& spec, VkPipelineShaderStageCreateInfo* stage, tn_diag* diag) {
    const gpu::Caps& caps = device.caps;
    if (spec.subgroup == 0 || (caps.subgroup_min == spec.subgroup && caps.subgroup_max == spec.subgroup && !caps.subgroup_fixed)) return TN_OK;
    if (!caps.subgroup_fixed || spec.subgroup < caps.subgroup_min || spec.subgroup > caps.subgroup_max)
      return fail(diag, TN_E_UNSUPPORTED, kErrSubgroup, VK_SUCCESS, "vulkan: %.40s: no such sub-groups\nwhy: the kernel is written for %u lanes, the device has %u..%u%s\ntry: the kernel without sub-groups",
                  spec.name.c_str(), spec.subgroup, caps.subgroup_min, caps.subgroup_max, caps.subgroup_fixed ? "" : ", as it likes");
    size.requiredSubgroupSize = spec.subgroup;
    stage->pNext = &size;
    if (device.full_subgroups && spec.group[0] % spec.subgroup == 0) stage->flags |= VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
    return TN_OK;
  }
};

}  // namespace

tn_status Pipeline::create_layouts(tn_diag* diag) {
  std::vector<VkDescriptorSetLayoutBinding> bindings(n_bindings());
  for (uint32_t i = 0; i < bindings.size(); ++i) bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set.bindingCount = n_bindings();
  set.pBindings = bindings.data();
  if (tn_status s = gpu->check(gpu->fn.vkCreateDescriptorSetLayout(gpu->device, &set, nullptr, &set_layout), "vkCreateDescriptorSetLayout", diag); s != TN_OK) return s;
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, param_bytes};
  VkPipelineLayoutCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.setLayoutCount = 1;
  info.pSetLayouts = &set_layout;
  info.pushConstantRangeCount = param_bytes != 0 && !params_in_buffer ? 1 : 0;
  info.pPushConstantRanges = &range;
  return gpu->check(gpu->fn.vkCreatePipelineLayout(gpu->device, &info, nullptr, &layout), "vkCreatePipelineLayout", diag);
}

tn_status Pipeline::create_pipeline(const gpu::KernelSpec& spec, const std::string& binary, tn_diag* diag) {
  const std::vector<uint32_t> words = words_of(binary);
  if (words.empty())
    return fail(diag, TN_E_FAILED, kErrText, VK_SUCCESS, "vulkan: %.60s: not a SPIR-V module\nwhy: %zu bytes that do not start with 0x07230203\ntry: empty the kernel cache", name.c_str(), binary.size());
  VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  code.codeSize = words.size() * 4;
  code.pCode = words.data();
  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.layout = layout;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.pName = "main";
  SubgroupDemand demand;
  if (tn_status s = demand.apply(gpu->physical, spec, &info.stage, diag); s != TN_OK) return s;
  if (tn_status s = gpu->check(gpu->fn.vkCreateShaderModule(gpu->device, &code, nullptr, &info.stage.module), "vkCreateShaderModule", diag); s != TN_OK) return s;
  const VkResult r = gpu->fn.vkCreateComputePipelines(gpu->device, gpu->cache, 1, &info, nullptr, &pipeline);
  gpu->fn.vkDestroyShaderModule(gpu->device, info.stage.module, nullptr);
  return gpu->check(r, "vkCreateComputePipelines", diag);
}

tn_status Pipeline::make(std::shared_ptr<Gpu> gpu, const gpu::KernelSpec& spec, const gpu::RenderOptions& options, const std::string& binary, std::unique_ptr<gpu::Kernel>* out, tn_diag* diag) {
  if (tn_status s = gpu->alive(diag); s != TN_OK) return s;
  std::unique_ptr<Pipeline> self(new Pipeline(std::move(gpu)));
  self->name = spec.name;
  self->n_buffers = static_cast<uint32_t>(spec.buffers.size());
  self->can_fail = spec.can_fail;
  self->param_bytes = gpu::param_layout(spec).bytes;
  self->params_in_buffer = options.params_in_buffer && self->param_bytes != 0;
  if (tn_status s = self->create_layouts(diag); s != TN_OK) return s;
  if (tn_status s = self->create_pipeline(spec, binary, diag); s != TN_OK) return s;
  *out = std::move(self);
  return TN_OK;
}

Pipeline::~Pipeline() {
  if (pipeline != VK_NULL_HANDLE) gpu->fn.vkDestroyPipeline(gpu->device, pipeline, nullptr);
  if (layout != VK_NULL_HANDLE) gpu->fn.vkDestroyPipelineLayout(gpu->device, layout, nullptr);
  if (set_layout != VK_NULL_HANDLE) gpu->fn.vkDestroyDescriptorSetLayout(gpu->device, set_layout, nullptr);
}

}  // namespace tenon::vulkan
