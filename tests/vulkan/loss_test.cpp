// A device that is lost, and memory that runs out: the driver's answers are put into the table of functions.
#include "backends/vulkan/compiler.h"
#include "backends/vulkan/stream.h"
#include "tests/vulkan/fixture.h"

namespace tenon::vulkan::test {
namespace {

std::atomic<int> n_calls{0};  // of the functions below, which Vulkan calls with nothing of ours

VKAPI_ATTR VkResult VKAPI_CALL submit_lost(VkQueue, uint32_t, const VkSubmitInfo*, VkFence) { return ++n_calls, VK_ERROR_DEVICE_LOST; }
VKAPI_ATTR VkResult VKAPI_CALL submit_out_of_memory(VkQueue, uint32_t, const VkSubmitInfo*, VkFence) { return ++n_calls, VK_ERROR_OUT_OF_HOST_MEMORY; }
VKAPI_ATTR VkResult VKAPI_CALL counter_lost(VkDevice, VkSemaphore, uint64_t*) { return VK_ERROR_DEVICE_LOST; }
VKAPI_ATTR VkResult VKAPI_CALL allocate_none(VkDevice, const VkMemoryAllocateInfo*, const VkAllocationCallbacks*, VkDeviceMemory*) { return VK_ERROR_OUT_OF_DEVICE_MEMORY; }

// A device whose table of functions can be changed.
class Loss : public ::testing::Test {
 protected:
  void SetUp() override {
    n_calls = 0;
    Settings settings;
    settings.validation = 1;
    tn_diag diag{};
    std::shared_ptr<Instance> instance;
    if (Instance::make(host.get(), settings, &instance, &diag) != TN_OK) GTEST_SKIP() << diag.msg;
    std::vector<std::string> refused;
    const std::vector<Physical> found = find_devices(instance->fn, instance->handle, &refused);
    if (found.empty()) GTEST_SKIP() << "no device";
    ASSERT_EQ(Gpu::open(instance, found[0], &gpu, &diag), TN_OK) << diag.msg;
    ASSERT_EQ(gpu->memory->alloc(1024, 256, MemoryKind::Device, &block, &diag), TN_OK) << diag.msg;
  }
  std::unique_ptr<gpu::Stream> stream() {
    std::unique_ptr<gpu::Stream> s;
    EXPECT_EQ(Stream::open(gpu, 0, &s, nullptr), TN_OK);
    return s;
  }
  uint64_t handle() const { return reinterpret_cast<uint64_t>(block); }
  Host host{Config{}};
  std::shared_ptr<Gpu> gpu;
  Block* block = nullptr;
};

TEST_F(Loss, is_told_by_every_later_call_with_the_drivers_words) {
  auto s = stream(), other = stream();
  std::shared_ptr<gpu::Fence> before, after;
  ASSERT_EQ(other->fence(&before, nullptr), TN_OK);
  ASSERT_EQ(s->fill_zero(handle(), 0, 64, nullptr), TN_OK);
  gpu->fn.vkQueueSubmit = submit_lost;
  tn_diag diag{};
  EXPECT_EQ(s->fence(&after, &diag), TN_E_DEVICE_LOST);
  EXPECT_EQ(diag.native_code, VK_ERROR_DEVICE_LOST);
  EXPECT_EQ(diag.native_domain, static_cast<uint32_t>(TN_KIND_VULKAN));
  EXPECT_NE(std::string(diag.msg).find("vkQueueSubmit said VK_ERROR_DEVICE_LOST"), std::string::npos) << diag.msg;
  const int calls = n_calls;
  EXPECT_EQ(other->fill_zero(handle(), 0, 64, &diag), TN_E_DEVICE_LOST);
  EXPECT_EQ(other->wait(before, &diag), TN_E_DEVICE_LOST);
  EXPECT_EQ(before->wait(0, &diag), TN_E_DEVICE_LOST);
  EXPECT_EQ(gpu->alive(&diag), TN_E_DEVICE_LOST);
  EXPECT_EQ(n_calls, calls);  // the driver is not asked again
  std::unique_ptr<gpu::Stream> late;
  EXPECT_EQ(Stream::open(gpu, 0, &late, &diag), TN_E_DEVICE_LOST);
}

TEST_F(Loss, ends_a_wait_and_leaves_host_memory_alone) {
  auto s = stream();
  int host_word = 5;
  ASSERT_EQ(s->fill_zero(handle(), 0, 64, nullptr), TN_OK);
  ASSERT_EQ(s->copy({0, 0, &host_word}, {handle(), 0, nullptr}, 4, nullptr), TN_OK);
  gpu->fn.vkQueueSubmit = [](VkQueue, uint32_t, const VkSubmitInfo*, VkFence) -> VkResult { return VK_SUCCESS; };  // never runs
  std::shared_ptr<gpu::Fence> fence;
  ASSERT_EQ(s->fence(&fence, nullptr), TN_OK);
  EXPECT_EQ(fence->wait(1000000, nullptr), TN_E_TIMEOUT);
  gpu->fn.vkGetSemaphoreCounterValue = counter_lost;
  EXPECT_EQ(fence->wait(TN_FOREVER, nullptr), TN_E_DEVICE_LOST);
  EXPECT_EQ(host_word, 5);
}

TEST_F(Loss, is_not_what_a_refused_submission_is_and_nothing_of_it_is_forgotten) {
  auto s = stream();
  const int word = 42;
  int back = 0;
  ASSERT_EQ(s->copy({handle(), 0, nullptr}, {0, 0, const_cast<int*>(&word)}, 4, nullptr), TN_OK);
  const auto submit = gpu->fn.vkQueueSubmit;
  gpu->fn.vkQueueSubmit = submit_out_of_memory;
  std::shared_ptr<gpu::Fence> fence;
  EXPECT_EQ(s->fence(&fence, nullptr), TN_E_OOM);
  EXPECT_EQ(s->fill_zero(handle(), 64, 64, nullptr), TN_E_OOM);
  gpu->fn.vkQueueSubmit = submit;
  ASSERT_EQ(s->copy({0, 0, &back}, {handle(), 0, nullptr}, 4, nullptr), TN_OK);
  ASSERT_EQ(s->fence(&fence, nullptr), TN_OK);
  ASSERT_EQ(fence->wait(TN_FOREVER, nullptr), TN_OK);
  EXPECT_EQ(back, 42);
}

TEST_F(Loss, is_not_what_memory_that_runs_out_is) {
  gpu->fn.vkAllocateMemory = allocate_none;
  Block* none = nullptr;
  tn_diag diag{};
  EXPECT_EQ(gpu->memory->alloc(64 << 20, 256, MemoryKind::Device, &none, &diag), TN_E_OOM);
  EXPECT_NE(std::string(diag.msg).find("67108864 bytes asked"), std::string::npos) << diag.msg;
  EXPECT_EQ(gpu->alive(nullptr), TN_OK);
}

TEST_F(Loss, of_memory_is_none_when_buffers_are_freed) {
  std::vector<Block*> blocks;
  for (int i = 0; i < 300; ++i) {
    Block* b = nullptr;
    ASSERT_EQ(gpu->memory->alloc(1 << 20, 256, MemoryKind::Device, &b, nullptr), TN_OK);
    blocks.push_back(b);
  }
  EXPECT_LE(gpu->memory->allocation_count(), 300u * (1 << 20) / gpu->memory->chunk_bytes(MemoryKind::Device) + 2);
  for (Block* b : blocks) gpu->memory->free(b);
  EXPECT_LE(gpu->memory->allocation_count(), 2u);
}

}  // namespace
}  // namespace tenon::vulkan::test
