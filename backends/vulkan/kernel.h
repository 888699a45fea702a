// backends/vulkan/kernel.h - a compute pipeline and what it takes.
#pragma once
#include <memory>

#include "backends/gpu_common/driver.h"
#include "backends/vulkan/gpu.h"

namespace tenon::vulkan {

class Pipeline final : public gpu::Kernel {
 public:
  // errors: TN_E_UNSUPPORTED when the device has no sub-groups of the size the kernel was written for.
  static tn_status make(std::shared_ptr<Gpu>, const gpu::KernelSpec&, const gpu::RenderOptions&, const std::string& binary, std::unique_ptr<gpu::Kernel>* out, tn_diag*);
  ~Pipeline() override;

  const std::shared_ptr<Gpu> gpu;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkPipeline pipeline = VK_NULL_HANDLE;
  std::string name;
  uint32_t n_buffers = 0;      // the spec's, then the parameters' if they have one, then the error word if it can fail
  bool can_fail = false, params_in_buffer = false;
  uint32_t param_bytes = 0;
  uint32_t n_bindings() const { return n_buffers + params_in_buffer + can_fail; }

 private:
  explicit Pipeline(std::shared_ptr<Gpu> g) : gpu(std::move(g)) {}
  tn_status create_layouts(tn_diag*);
  tn_status create_pipeline(const gpu::KernelSpec&, const std::string& binary, tn_diag*);
};

}  // namespace tenon::vulkan
