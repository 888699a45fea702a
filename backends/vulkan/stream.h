// backends/vulkan/stream.h - in-order work: commands recorded as they come, handed to the device in batches.
//
// A batch is a command buffer. It is submitted by fence(), by wait(), when it is long, or when much staging memory hangs on it;
// submissions of one stream go to one VkQueue, so order needs no semaphore, and a full memory barrier stands before every
// command. Batches, slabs and pools of descriptor sets are used again once the device is past them.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "backends/gpu_common/driver.h"
#include "backends/vulkan/descriptors.h"
#include "backends/vulkan/kernel.h"
#include "backends/vulkan/timeline.h"

namespace tenon::vulkan {

class Stream final : public gpu::Stream {
 public:
  static tn_status open(std::shared_ptr<Gpu>, int32_t priority, std::unique_ptr<gpu::Stream>* out, tn_diag*);
  ~Stream() override;

  tn_status copy(const Piece& dst, const Piece& src, uint64_t bytes, tn_diag*) override;
  tn_status fill_zero(uint64_t handle, uint64_t offset, uint64_t bytes, tn_diag*) override;
  tn_status dispatch(const gpu::Dispatch&, tn_diag*) override;
  tn_status fence(std::shared_ptr<gpu::Fence>* out, tn_diag*) override;
  tn_status wait(const std::shared_ptr<gpu::Fence>& fence, tn_diag*) override;
  uint64_t native() const override { return reinterpret_cast<uint64_t>(queue_->handle); }

 private:
  struct Batch {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    uint64_t value = 0;
    uint32_t n_commands = 0;
    uint64_t staged_bytes = 0;
    bool ended = false;
    std::vector<std::shared_ptr<const void>> keep;  // slabs, pools, imports
  };
  struct Wait { std::shared_ptr<Timeline> timeline; uint64_t value; };
  struct Room { std::shared_ptr<Slab> slab; uint64_t offset = 0, bytes = 0; char* at() const { return slab->block->host + offset; } };

  explicit Stream(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)), pools_(gpu_.get()) {}
  // stream.cpp: batches
  tn_status begin(tn_diag*);             // a batch that takes commands
  tn_status submit(tn_diag*);            // what is recorded and waited for, if anything
  tn_status submit_if_long(tn_diag*);
  tn_status reclaim(tn_diag*);           // batches that the device is past
  void barrier(VkPipelineStageFlags after, VkAccessFlags access);
  void hold(std::shared_ptr<const void>);
  // dispatch.cpp
  tn_status bind(const Pipeline&, const gpu::Dispatch&, VkDescriptorSet*, tn_diag*);
  tn_status write_params(const gpu::Dispatch&, VkDescriptorBufferInfo*, tn_diag*);
  // copy.cpp
  tn_status room(uint64_t at_most, uint64_t align, Room*, tn_diag*);
  tn_status make_space(tn_diag*);
  tn_status copy_buffers(VkBuffer dst, uint64_t dst_offset, VkBuffer src, uint64_t src_offset, uint64_t bytes, tn_diag*);
  tn_status upload(const Block&, uint64_t offset, const char* host, uint64_t bytes, tn_diag*);
  tn_status download(char* host, const Block&, uint64_t offset, uint64_t bytes, tn_diag*);
  tn_status await_host_writes(const void* host, uint64_t bytes, tn_diag*);

  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<Timeline> timeline_;
  Queue* queue_ = nullptr;
  VkCommandPool command_pool_ = VK_NULL_HANDLE;
  SetPools pools_;
  std::shared_ptr<Slab> slab_;          // being filled
  std::unique_ptr<Batch> recording_;    // value submitted_ + 1
  std::deque<std::unique_ptr<Batch>> running_;
  std::vector<std::unique_ptr<Batch>> idle_;
  std::vector<Wait> waits_;             // before the next batch
  uint64_t submitted_ = 0;
};

}  // namespace tenon::vulkan
