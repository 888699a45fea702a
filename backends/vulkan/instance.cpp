// backends/vulkan/instance.cpp - see instance.h.
#include "backends/vulkan/instance.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "backends/vulkan/status.h"

namespace tenon::vulkan {
namespace {

constexpr char kLibrary[] = "libvulkan.so.1";
constexpr char kValidation[] = "VK_LAYER_KHRONOS_validation";

tn_status number(const tn_host* host, const char* key, uint64_t most, uint64_t* value, tn_diag* diag) {
  const char* text = host != nullptr && host->config != nullptr ? host->config(host->ctx, key) : nullptr;
  if (text == nullptr) return TN_OK;
  char* end = nullptr;
  errno = 0;
  const unsigned long long read = std::strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != 0 || errno != 0 || read > most)
    return fail(diag, TN_E_ARG, kErrConfig, VK_SUCCESS, "vulkan: bad value of %s\nwhy: \"%.40s\" is not a whole number in 0..%llu\ntry: leave it out for %llu", key, text,
                static_cast<unsigned long long>(most), static_cast<unsigned long long>(*value));
  *value = read;
  return TN_OK;
}

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  const bool error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0;
  static_cast<const Instance*>(user)->log(error ? TN_LOG_ERROR : TN_LOG_WARN, std::string("validation: ") + data->pMessage);
  return VK_FALSE;
}

}  // namespace

tn_status read_settings(const tn_host* host, Settings* out, tn_diag* diag) {
  uint64_t import_host = out->import_host;
  tn_status s = number(host, "vulkan.validation", 2, &out->validation, diag);
  if (s == TN_OK) s = number(host, "vulkan.staging_bytes", uint64_t{1} << 40, &out->staging_bytes, diag);
  if (s == TN_OK) s = number(host, "vulkan.import_host", 1, &import_host, diag);
  out->import_host = import_host != 0;
  return s;
}

void Instance::log(uint32_t level, const std::string& text) const {
  if (host_ == nullptr || host_->log == nullptr) return;
  const std::string line = "vulkan: " + text;
  host_->log(host_->ctx, level, line.c_str(), static_cast<uint32_t>(line.size()));
}

tn_status Instance::open_library(tn_diag* diag) {
  // NODELETE: drivers leave destructors of thread-local data behind, which would run in code that is gone.
  library_ = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library_ == nullptr)
    return fail(diag, TN_E_UNAVAILABLE, kErrAbsent, VK_SUCCESS, "vulkan: no Vulkan loader\nwhy: %s: %.90s\ntry: apt install libvulkan1 mesa-vulkan-drivers", kLibrary, dlerror());
  fn.vkGetInstanceProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library_, "vkGetInstanceProcAddr"));
  if (fn.vkGetInstanceProcAddr != nullptr) {
#define VULKAN_FIND(name) fn.name = reinterpret_cast<PFN_##name>(fn.vkGetInstanceProcAddr(nullptr, #name));
    VULKAN_GLOBAL_FUNCTIONS(VULKAN_FIND)
#undef VULKAN_FIND
  }
  // vkEnumerateInstanceVersion is absent from loaders of Vulkan 1.0.
  uint32_t version = VK_API_VERSION_1_0;
  if (fn.vkEnumerateInstanceVersion != nullptr) fn.vkEnumerateInstanceVersion(&version);
  if (version >= VK_API_VERSION_1_2 && fn.vkCreateInstance != nullptr) return TN_OK;
  return fail(diag, TN_E_UNAVAILABLE, kErrAbsent, VK_SUCCESS, "vulkan: the loader is too old\nwhy: %s speaks %u.%u, 1.2 is needed\ntry: install a newer libvulkan1", kLibrary,
              VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
}

tn_status Instance::create(tn_diag* diag) {
  VkApplicationInfo app{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  app.pApplicationName = "tenon", app.pEngineName = "tenon";
  app.apiVersion = VK_API_VERSION_1_2;
  const char* layers[] = {kValidation};
  const char* extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
  const VkValidationFeatureEnableEXT check_barriers = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT checks{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
  checks.enabledValidationFeatureCount = 1;
  checks.pEnabledValidationFeatures = &check_barriers;
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &app;
  if (settings.validation == 2) info.pNext = &checks;
  info.enabledLayerCount = settings.validation != 0 ? 1 : 0;
  info.enabledExtensionCount = static_cast<uint32_t>(settings.validation);
  info.ppEnabledLayerNames = layers;
  info.ppEnabledExtensionNames = extensions;
  const VkResult r = fn.vkCreateInstance(&info, nullptr, &handle);
  if (r == VK_SUCCESS) return TN_OK;
  handle = VK_NULL_HANDLE;
  char room[32];
  if (r == VK_ERROR_LAYER_NOT_PRESENT || (r == VK_ERROR_EXTENSION_NOT_PRESENT && settings.validation != 0))
    return fail(diag, TN_E_UNAVAILABLE, kErrAbsent, r, "vulkan: no validation layer\nwhy: %s is not installed, and vulkan.validation is set\ntry: apt install vulkan-validationlayers", kValidation);
  return fail(diag, TN_E_UNAVAILABLE, kErrAbsent, r, "vulkan: no driver\nwhy: vkCreateInstance said %s\ntry: install the GPU's Vulkan driver, or mesa-vulkan-drivers", result_name(r, room));
}

void Instance::report_messages() {
  if (settings.validation == 0 || fn.vkCreateDebugUtilsMessengerEXT == nullptr) return;
  VkDebugUtilsMessengerCreateInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT;
  info.pfnUserCallback = on_message;
  info.pUserData = this;
  fn.vkCreateDebugUtilsMessengerEXT(handle, &info, nullptr, &messenger_);
}

tn_status Instance::make(const tn_host* host, const Settings& settings, std::shared_ptr<Instance>* out, tn_diag* diag) {
  std::shared_ptr<Instance> self(new Instance);
  self->host_ = host;
  self->settings = settings;
  if (tn_status s = self->open_library(diag); s != TN_OK) return s;
  if (tn_status s = self->create(diag); s != TN_OK) return s;
#define VULKAN_FIND(name) self->fn.name = reinterpret_cast<PFN_##name>(self->fn.vkGetInstanceProcAddr(self->handle, #name));
  VULKAN_INSTANCE_FUNCTIONS(VULKAN_FIND)
  if (settings.validation != 0) { VULKAN_DEBUG_FUNCTIONS(VULKAN_FIND) }
#undef VULKAN_FIND
  self->report_messages();
  *out = std::move(self);
  return TN_OK;
}

Instance::~Instance() {
  if (messenger_ != VK_NULL_HANDLE) fn.vkDestroyDebugUtilsMessengerEXT(handle, messenger_, nullptr);
  if (handle != VK_NULL_HANDLE) fn.vkDestroyInstance(handle, nullptr);
  if (library_ != nullptr) dlclose(library_);
}

}  // namespace tenon::vulkan
