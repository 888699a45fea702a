// backends/vulkan/instance.h - the loader library, one VkInstance, and the validation layer when it is asked for.
#pragma once
#include <tenon/plugin.h>

#include <memory>
#include <string>

#include "backends/vulkan/api.h"

namespace tenon::vulkan {

// What the configuration says; keys are "vulkan.<name>".
struct Settings {
  uint64_t validation = 0;               // vulkan.validation: 1 = the layer's checks, 2 = also for missing barriers (slow)
  uint64_t staging_bytes = 256u << 20;   // vulkan.staging_bytes: host memory for copies under way, per device
  bool import_host = true;               // vulkan.import_host: large copies reach host memory in place, where the driver can
};
tn_status read_settings(const tn_host*, Settings*, tn_diag*);

// Lives as long as anything made from it (shared). Threads: any.
class Instance {
 public:
  // errors: TN_E_UNAVAILABLE names the library, driver or layer that is absent and what to install.
  static tn_status make(const tn_host*, const Settings&, std::shared_ptr<Instance>*, tn_diag*);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  void log(uint32_t level, const std::string& text) const;

  InstanceApi fn;
  VkInstance handle = VK_NULL_HANDLE;
  Settings settings;

 private:
  Instance() = default;
  tn_status open_library(tn_diag*);
  tn_status create(tn_diag*);
  void report_messages();

  const tn_host* host_ = nullptr;
  void* library_ = nullptr;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
};

}  // namespace tenon::vulkan
