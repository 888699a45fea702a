// backends/vulkan/host_import.cpp - see host_import.h.
#include "backends/vulkan/host_import.h"

namespace tenon::vulkan {
namespace {

constexpr VkExternalMemoryHandleTypeFlagBits kHostPages = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;

}  // namespace

bool HostImport::create_buffer(uint64_t bytes) {
  VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO};
  external.handleTypes = kHostPages;
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.pNext = &external;
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  return gpu_->fn.vkCreateBuffer(gpu_->device, &info, nullptr, &buffer) == VK_SUCCESS;
}

bool HostImport::bind_pages(void* first_page, uint64_t bytes) {
  VkMemoryHostPointerPropertiesEXT pages{VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  if (gpu_->fn.vkGetMemoryHostPointerPropertiesEXT(gpu_->device, kHostPages, first_page, &pages) != VK_SUCCESS) return false;
  VkMemoryRequirements need{};
  gpu_->fn.vkGetBufferMemoryRequirements(gpu_->device, buffer, &need);
  const uint32_t type = choose_memory_type(gpu_->physical.memory, MemoryKind::Host, pages.memoryTypeBits & need.memoryTypeBits);
  if (type == VK_MAX_MEMORY_TYPES || need.size > bytes) return false;
  VkImportMemoryHostPointerInfoEXT import{VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT};
  import.handleType = kHostPages;
  import.pHostPointer = first_page;
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  info.pNext = &import;
  info.allocationSize = bytes;
  info.memoryTypeIndex = type;
  return gpu_->fn.vkAllocateMemory(gpu_->device, &info, nullptr, &memory_) == VK_SUCCESS &&
         gpu_->fn.vkBindBufferMemory(gpu_->device, buffer, memory_, 0) == VK_SUCCESS;
}

std::shared_ptr<HostImport> HostImport::make(Gpu* gpu, void* host, uint64_t bytes) {
  const uint64_t align = gpu->physical.import_align;
  if (align == 0 || !gpu->instance->settings.import_host || gpu->fn.vkGetMemoryHostPointerPropertiesEXT == nullptr) return nullptr;
  const auto address = reinterpret_cast<uintptr_t>(host);
  const uintptr_t first = address / align * align;
  const uint64_t length = (address + bytes - first + align - 1) / align * align;
  if (length > gpu->physical.max_allocation_bytes) return nullptr;
  std::shared_ptr<HostImport> self(new HostImport(gpu));
  self->offset = address - first;
  if (!self->create_buffer(length) || !self->bind_pages(reinterpret_cast<void*>(first), length)) return nullptr;
  return self;
}

HostImport::~HostImport() {
  if (buffer != VK_NULL_HANDLE) gpu_->fn.vkDestroyBuffer(gpu_->device, buffer, nullptr);
  if (memory_ != VK_NULL_HANDLE) gpu_->fn.vkFreeMemory(gpu_->device, memory_, nullptr);
}

}  // namespace tenon::vulkan
