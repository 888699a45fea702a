// backends/vulkan/stream.cpp - batches, fences and waits of a stream; see stream.h.
#include "backends/vulkan/stream.h"

#include "backends/vulkan/status.h"

namespace tenon::vulkan {
namespace {

constexpr uint32_t kLongBatch = 64;                       // commands
constexpr uint64_t kMuchStaged = uint64_t{16} << 20;      // so that the device copies while the host still does
constexpr VkPipelineStageFlags kWork = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;

}  // namespace

tn_status Stream::open(std::shared_ptr<Gpu> gpu, int32_t priority, std::unique_ptr<gpu::Stream>* out, tn_diag* diag) {
  if (tn_status s = gpu->alive(diag); s != TN_OK) return s;
  std::unique_ptr<Stream> self(new Stream(gpu));
  if (tn_status s = Timeline::make(gpu, &self->timeline_, diag); s != TN_OK) return s;
  VkCommandPoolCreateInfo info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT | VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
  info.queueFamilyIndex = gpu->physical.queue_family;
  if (tn_status s = gpu->check(gpu->fn.vkCreateCommandPool(gpu->device, &info, nullptr, &self->command_pool_), "vkCreateCommandPool", diag); s != TN_OK) return s;
  self->queue_ = gpu->choose_queue(priority);
  *out = std::move(self);
  return TN_OK;
}

Stream::~Stream() {
  // Work is over by contract; a caller that errs must still not pull memory from under the device.
  if (timeline_ != nullptr && submitted_ != 0) timeline_->wait(submitted_, TN_FOREVER, nullptr);
  if (timeline_ != nullptr) gpu_->landings.drop(timeline_->stream);
  if (queue_ != nullptr) queue_->streams.fetch_sub(1);
  if (command_pool_ != VK_NULL_HANDLE) gpu_->fn.vkDestroyCommandPool(gpu_->device, command_pool_, nullptr);
}

tn_status Stream::reclaim(tn_diag* diag) {
  if (running_.empty()) return TN_OK;
  uint64_t reached = 0;
  if (tn_status s = timeline_->reached(&reached, diag); s != TN_OK) return s;
  while (!running_.empty() && running_.front()->value <= reached) {
    running_.front()->keep.clear();
    idle_.push_back(std::move(running_.front()));
    running_.pop_front();
  }
  if (running_.empty() && slab_ != nullptr && slab_.use_count() == 1) slab_->used = 0;
  return TN_OK;
}

tn_status Stream::begin(tn_diag* diag) {
  if (tn_status s = gpu_->alive(diag); s != TN_OK) return s;
  if (recording_ != nullptr && recording_->ended)
    if (tn_status s = submit(diag); s != TN_OK) return s;
  if (recording_ != nullptr) return TN_OK;
  if (tn_status s = reclaim(diag); s != TN_OK) return s;
  std::unique_ptr<Batch> batch;
  if (idle_.empty()) {
    batch = std::make_unique<Batch>();
    VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    info.commandPool = command_pool_;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    if (tn_status s = gpu_->check(gpu_->fn.vkAllocateCommandBuffers(gpu_->device, &info, &batch->commands), "vkAllocateCommandBuffers", diag); s != TN_OK) return s;
  } else {
    batch = std::move(idle_.back());
    idle_.pop_back();
  }
  batch->n_commands = 0, batch->staged_bytes = 0, batch->ended = false;
  VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  const tn_status s = gpu_->check(gpu_->fn.vkBeginCommandBuffer(batch->commands, &info), "vkBeginCommandBuffer", diag);
  (s == TN_OK ? recording_ : idle_.emplace_back()) = std::move(batch);
  return s;
}

void Stream::barrier(VkPipelineStageFlags after, VkAccessFlags access) {
  VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  memory.dstAccessMask = access;
  gpu_->fn.vkCmdPipelineBarrier(recording_->commands, kWork, after, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void Stream::hold(std::shared_ptr<const void> thing) {
  // What is used many times in a row (the current slab, the current pool) is held once.
  if (recording_->keep.empty() || recording_->keep.back() != thing) recording_->keep.push_back(std::move(thing));
}

tn_status Stream::submit(tn_diag* diag) {
  if (tn_status s = gpu_->alive(diag); s != TN_OK) return s;
  if (recording_ == nullptr) {
    if (waits_.empty()) return TN_OK;
    if (tn_status s = begin(diag); s != TN_OK) return s;  // an empty batch, for its waits
  }
  Batch& batch = *recording_;
  if (!batch.ended) {
    barrier(VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    if (tn_status s = gpu_->check(gpu_->fn.vkEndCommandBuffer(batch.commands), "vkEndCommandBuffer", diag); s != TN_OK) return s;
    batch.ended = true;
  }
  batch.value = submitted_ + 1;
  std::vector<VkSemaphore> semaphores;
  std::vector<uint64_t> values;
  for (const Wait& w : waits_) semaphores.push_back(w.timeline->semaphore), values.push_back(w.value);
  const std::vector<VkPipelineStageFlags> stages(waits_.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  VkTimelineSemaphoreSubmitInfo timeline{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  timeline.waitSemaphoreValueCount = static_cast<uint32_t>(values.size());
  timeline.pWaitSemaphoreValues = values.data();
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &batch.value;
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.pNext = &timeline;
  info.waitSemaphoreCount = static_cast<uint32_t>(semaphores.size());
  info.pWaitSemaphores = semaphores.data();
  info.pWaitDstStageMask = stages.data();
  info.commandBufferCount = 1;
  info.pCommandBuffers = &batch.commands;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &timeline_->semaphore;
  VkResult r;
  {
    const std::lock_guard lock(queue_->mutex);
    r = gpu_->fn.vkQueueSubmit(queue_->handle, 1, &info, VK_NULL_HANDLE);
  }
  // Refused for want of memory, the batch stays and is tried again: nothing of the stream's order is lost.
  if (tn_status s = gpu_->check(r, "vkQueueSubmit", diag); s != TN_OK) return s;
  for (Wait& w : waits_) batch.keep.push_back(std::move(w.timeline));  // its semaphore is in use until the batch is over
  waits_.clear();
  ++submitted_;
  running_.push_back(std::move(recording_));
  return TN_OK;
}

tn_status Stream::submit_if_long(tn_diag* diag) {
  return recording_->n_commands >= kLongBatch || recording_->staged_bytes >= kMuchStaged ? submit(diag) : TN_OK;
}

tn_status Stream::fence(std::shared_ptr<gpu::Fence>* out, tn_diag* diag) {
  if (tn_status s = submit(diag); s != TN_OK) return s;
  *out = std::make_shared<TimelineFence>(timeline_, submitted_);
  return TN_OK;
}

tn_status Stream::wait(const std::shared_ptr<gpu::Fence>& fence, tn_diag* diag) {
  const auto* other = dynamic_cast<const TimelineFence*>(fence.get());
  if (other == nullptr || other->timeline->gpu != gpu_)
    return fail(diag, TN_E_UNSUPPORTED, kErrForeignFence, VK_SUCCESS, "vulkan: a fence of another device\nwhy: %s cannot wait for it\ntry: wait on the host", gpu_->physical.facts.info.name);
  if (tn_status s = gpu_->alive(diag); s != TN_OK) return s;
  if (other->timeline == timeline_) return TN_OK;  // in order anyway
  if (recording_ != nullptr)
    if (tn_status s = submit(diag); s != TN_OK) return s;
  // Waited for on the device even when it is reached already: the semaphore also makes the other's writes visible.
  waits_.push_back({other->timeline, other->value});
  gpu_->landings.follow(timeline_->stream, submitted_ + 1, other->timeline->stream, other->value);
  return TN_OK;
}

}  // namespace tenon::vulkan
