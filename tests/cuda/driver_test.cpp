// What gpu_common asks of a driver, on the doubles of both APIs with texts written by hand.
#include <thread>

#include "tests/cuda/route.h"

namespace tenon::gpu::test {
namespace {

KernelSpec spec(const char* name, uint32_t buffers, std::vector<uint8_t> scalars, uint32_t group = 64) {
  KernelSpec s;
  s.name = name;
  for (uint32_t i = 0; i < buffers; ++i) s.buffers.push_back({"b" + std::to_string(i), TN_F32, true});
  for (uint8_t dtype : scalars) s.scalars.push_back({"s" + std::to_string(s.scalars.size()), dtype});
  s.group[0] = group;
  return s;
}

const char* const kScale = R"(
struct Params { unsigned n; float factor; };
extern "C" __global__ void __launch_bounds__(64) scale(const float* __restrict__ x, float* __restrict__ y, Params p) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < p.n) y[i] = x[i] * p.factor;
}
)";
KernelSpec scale_spec() { return spec("scale", 2, {TN_U32, TN_F32}); }

std::vector<float> count_up(size_t n) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<float>(i);
  return v;
}

TEST_F(Route, reports_say_double) {
  ASSERT_EQ(try_driver(), TN_OK) << diag_.msg;
  const std::vector<DeviceFacts> all = driver_->enumerate();
  ASSERT_EQ(all.size(), 1u);
  const tn_device_info& info = all[0].info;
  EXPECT_TRUE(all[0].emulated);
  EXPECT_NE(info.flags & TN_DEVICE_EMULATED, 0u);
  EXPECT_NE(std::string(info.name).find("double"), std::string::npos) << info.name;
  EXPECT_EQ(std::string(info.driver).rfind("double: ", 0), 0u) << info.driver;
  EXPECT_EQ(info.kind, is_cuda() ? uint32_t{TN_KIND_CUDA} : uint32_t{TN_KIND_HIP});
  EXPECT_EQ(info.mem_total_bytes, uint64_t{4} << 30);
  EXPECT_EQ(info.n_spaces, 2u);
  EXPECT_EQ(all[0].gpu.architecture, device().caps().architecture);
  EXPECT_EQ(all[0].gpu.storage, device().caps().storage);
  EXPECT_EQ(info.pci_bdf, (is_cuda() ? 0x40u : 0x50u) << 8);
  EXPECT_EQ(all[0].caps.size(), 1u) << "no rates of a card for a processor";
}

TEST_F(Route, capabilities_come_from_the_driver) {
  const Caps& c = device().caps();
  EXPECT_EQ(c.architecture, is_cuda() ? "sm_90" : "gfx90a:sramecc+:xnack-");
  EXPECT_EQ(c.subgroup_min, is_cuda() ? 32u : 64u);
  EXPECT_EQ(c.local_bytes, is_cuda() ? 49152u : 65536u);
  EXPECT_EQ(c.max_threads, 1024u);
  // HIP counts the work-items of a launch in 32 bits.
  EXPECT_EQ(c.max_groups[0], is_cuda() ? 0x7FFFFFFFu : 0xFFFFFFFFu / 1024);
  EXPECT_EQ(c.binding_align, 16u);
  EXPECT_NE(c.storage >> TN_BF16 & 1, 0u);
}

TEST_F(Route, bytes_come_back_as_they_went) {
  const std::vector<float> x = count_up(1000);
  const Memory a = upload(x), b = alloc(4000);
  ASSERT_EQ(stream().copy({b.handle, 400, nullptr}, {a.handle, 0, nullptr}, 3600, &diag_), TN_OK) << diag_.msg;
  ASSERT_EQ(stream().fill_zero(b.handle, 0, 400, &diag_), TN_OK) << diag_.msg;
  const std::vector<float> y = download<float>(b, 1000);
  for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(y[i], i < 100 ? 0.0f : x[i - 100]) << i;
  device().free(a.handle);
  device().free(b.handle);
}

TEST_F(Route, a_kernel_gets_buffers_at_their_offsets_and_scalars_by_value) {
  const auto k = kernel(scale_spec(), kScale);
  const Memory x = upload(count_up(128)), y = upload(std::vector<float>(128, -1));
  ASSERT_EQ(launch(*k, {{x.handle, 64, 448}, {y.handle, 32, 480}}, block(100u, 0.5f), 2, 64), TN_OK) << diag_.msg;
  const std::vector<float> got = download<float>(y, 128);
  for (int i = 0; i < 128; ++i) ASSERT_EQ(got[i], i < 8 || i >= 108 ? -1.0f : 0.5f * float(i - 8 + 16)) << i;
}

TEST_F(Route, arguments_that_do_not_fit_are_refused) {
  const auto k = kernel(scale_spec(), kScale);
  const Memory x = alloc(256);
  EXPECT_EQ(launch(*k, {{x.handle, 0, 256}}, block(1u, 1.0f), 1, 64), TN_E_ARG);
  EXPECT_TRUE(says("1 buffers and 8 parameter bytes given, 2 and 8 declared")) << diag_.msg;
}

TEST_F(Route, large_parameter_blocks_lie_in_memory_that_is_used_again) {
  KernelSpec s = spec("store", 1, std::vector<uint8_t>(120, TN_U32));
  s.can_fail = true;
  const char* const text = R"(
struct Params { unsigned value[120]; };
extern "C" __global__ void __launch_bounds__(64) store(unsigned* y, const Params* p, unsigned* error) {
  if (threadIdx.x == 0) { y[p->value[0]] = p->value[119]; error[0] = 7; }
}
)";
  const auto k = kernel(s, text, {is_cuda() ? Dialect::Cuda : Dialect::Hip, true});
  const Memory y = alloc(4000), error = upload(std::vector<uint32_t>(4));
  const long long before = Double::get().count("allocations");
  for (uint32_t i = 0; i < 1000; ++i) {
    std::vector<uint32_t> params(120, 0);
    params[0] = i, params[119] = 3 * i;
    const std::string bytes(reinterpret_cast<const char*>(params.data()), 480);
    ASSERT_EQ(launch(*k, {{y.handle, 0, 4000}, {error.handle, 0, 16}}, bytes, 1, 64), TN_OK) << diag_.msg;
  }
  const auto got = download<uint32_t>(y, 1000);
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(got[i], 3 * i) << i;
  EXPECT_EQ(download<uint32_t>(error, 4)[0], 7u);
  EXPECT_LE(Double::get().count("allocations") - before, 3) << "1000 blocks of 512 bytes fit twice into 64 KiB at a time";
}

TEST_F(Route, host_visible_memory_is_shared_with_kernels) {
  const auto k = kernel(scale_spec(), kScale);
  const Memory m = alloc(512, true);
  ASSERT_NE(m.host, nullptr);
  float* values = static_cast<float*>(m.host);
  for (int i = 0; i < 64; ++i) values[i] = float(i);
  ASSERT_EQ(launch(*k, {{m.handle, 0, 256}, {m.handle, 256, 256}}, block(64u, 2.0f), 1, 64), TN_OK) << diag_.msg;
  ASSERT_EQ(finish(), TN_OK) << diag_.msg;
  for (int i = 0; i < 64; ++i) ASSERT_EQ(values[64 + i], 2.0f * float(i)) << i;
}

TEST_F(Route, memory_is_aligned_as_asked_and_counted) {
  Memory m;
  for (uint64_t align : {1u, 256u, 4096u, 65536u}) {
    ASSERT_EQ(device().alloc(100, align, false, &m, &diag_), TN_OK) << diag_.msg;
    EXPECT_EQ(m.handle % align, 0u);
    EXPECT_EQ(m.host, nullptr);
    device().free(m.handle);
  }
  ASSERT_EQ(device().alloc(0, 1, false, &m, &diag_), TN_OK) << diag_.msg;
  device().free(m.handle);
  EXPECT_EQ(Double::get().count("blocks"), 0);
  m = alloc(1 << 20);
  EXPECT_EQ(device().free_bytes(), (uint64_t{4} << 30) - (1 << 20));
}

TEST_F(Route, memory_works_without_the_stream_ordered_allocator) {
  set("POOLS", "0");
  const Memory m = upload(count_up(64));
  EXPECT_EQ(download<float>(m, 64), count_up(64));
  device().free(m.handle);
  EXPECT_EQ(Double::get().count("blocks"), 0);
}

TEST_F(Route, out_of_memory_says_how_much_was_asked_and_is_not_sticky) {
  set("MEMORY", "1000000");
  Memory m;
  ASSERT_EQ(device().alloc(2000000, 64, false, &m, &diag_), TN_E_OOM);
  EXPECT_TRUE(says("2000000 bytes")) << diag_.msg;
  EXPECT_EQ(diag_.native_code, 2);
  EXPECT_EQ(device().health(&diag_), TN_OK);
  EXPECT_NE(alloc(500000).handle, 0u);
}

TEST_F(Route, every_failing_allocation_is_reported_and_leaks_nothing) {
  for (int n = 1; n <= 3; ++n) {
    for (bool host_visible : {false, true}) {
      device();
      set("OOM_AT", std::to_string(n));
      Memory m[3];
      for (int i = 0; i < 3; ++i) EXPECT_EQ(device().alloc(64, 64, host_visible, &m[i], &diag_), i + 1 == n ? TN_E_OOM : TN_OK);
      for (int i = 0; i < 3; ++i) device().free(m[i].handle);
      EXPECT_EQ(Double::get().count("blocks"), 0);
    }
  }
}

TEST_F(Route, a_fence_is_open_until_the_work_is_done) {
  set("ASYNC", "20000");
  const Memory m = alloc(64);
  ASSERT_EQ(stream().fill_zero(m.handle, 0, 64, &diag_), TN_OK);
  std::shared_ptr<Fence> fence;
  ASSERT_EQ(stream().fence(&fence, &diag_), TN_OK);
  EXPECT_EQ(fence->wait(0, &diag_), TN_E_TIMEOUT);
  EXPECT_EQ(fence->wait(1000000, &diag_), TN_E_TIMEOUT);
  EXPECT_TRUE(says("1000000 ns")) << diag_.msg;
  EXPECT_EQ(fence->wait(TN_FOREVER, &diag_), TN_OK);
  EXPECT_EQ(fence->wait(0, &diag_), TN_OK);
}

TEST_F(Route, a_pageable_source_may_change_when_copy_has_returned) {
  set("ASYNC", "5000");
  std::vector<float> x = count_up(64);
  const Memory m = upload(x);
  x.assign(64, -1);
  EXPECT_EQ(download<float>(m, 64), count_up(64));
}

TEST_F(Route, parameters_may_change_when_dispatch_has_returned) {
  set("ASYNC", "2000");
  const auto k = kernel(scale_spec(), kScale);
  const Memory x = upload(count_up(64)), y = alloc(256);
  std::string params = block(64u, 3.0f);
  ASSERT_EQ(launch(*k, {{x.handle, 0, 256}, {y.handle, 0, 256}}, params, 1, 64), TN_OK);
  std::fill(params.begin(), params.end(), '\x7f');
  const auto got = download<float>(y, 64);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(got[i], 3.0f * float(i));
}

TEST_F(Route, a_stream_waits_for_the_fence_of_another) {
  set("ASYNC", "10000");
  const auto k = kernel(scale_spec(), kScale);
  const Memory x = upload(count_up(64)), y = alloc(256);
  ASSERT_EQ(finish(), TN_OK);
  std::unique_ptr<Stream> second;
  ASSERT_EQ(device().open_stream(1, &second, &diag_), TN_OK);
  ASSERT_EQ(launch(*k, {{x.handle, 0, 256}, {x.handle, 0, 256}}, block(64u, 10.0f), 1, 64), TN_OK);
  std::shared_ptr<Fence> fence, done;
  ASSERT_EQ(stream().fence(&fence, &diag_), TN_OK);
  ASSERT_EQ(second->wait(fence, &diag_), TN_OK) << diag_.msg;
  ASSERT_EQ(second->copy({y.handle, 0, nullptr}, {x.handle, 0, nullptr}, 256, &diag_), TN_OK);
  ASSERT_EQ(second->fence(&done, &diag_), TN_OK);
  ASSERT_EQ(done->wait(TN_FOREVER, &diag_), TN_OK);
  EXPECT_EQ(download<float>(y, 64)[63], 630.0f);
}

TEST_F(Route, events_are_used_again) {
  for (int i = 0; i < 100; ++i) ASSERT_EQ(finish(), TN_OK);
  EXPECT_LE(Double::get().count("events"), 2);
}

TEST_F(Route, devices_are_separate) {
  set("DEVICES", "2");
  ASSERT_EQ(try_driver(), TN_OK) << diag_.msg;
  const auto all = driver_->enumerate();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_NE(std::memcmp(all[0].info.uuid, all[1].info.uuid, 16), 0);
  EXPECT_NE(all[0].info.pci_bdf, all[1].info.pci_bdf);
  std::unique_ptr<Device> other;
  std::unique_ptr<Stream> others;
  ASSERT_EQ(driver_->open_device(1, &other, &diag_), TN_OK) << diag_.msg;
  ASSERT_EQ(other->open_stream(0, &others, &diag_), TN_OK) << diag_.msg;
  std::shared_ptr<Fence> fence;
  ASSERT_EQ(others->fence(&fence, &diag_), TN_OK) << diag_.msg;
  EXPECT_EQ(stream().wait(fence, &diag_), TN_E_UNSUPPORTED);
  EXPECT_NE(device().native(), other->native());
}

TEST_F(Route, eight_devices_are_listed_and_opened) {
  set("DEVICES", "8");
  ASSERT_EQ(try_driver(), TN_OK) << diag_.msg;
  ASSERT_EQ(driver_->enumerate().size(), 8u);
  for (uint32_t i = 0; i < 8; ++i) {
    std::unique_ptr<Device> d;
    ASSERT_EQ(driver_->open_device(i, &d, &diag_), TN_OK) << diag_.msg;
  }
  std::unique_ptr<Device> none;
  EXPECT_EQ(driver_->open_device(8, &none, &diag_), TN_E_NOT_FOUND);
}

TEST_F(Route, without_devices_the_driver_is_unavailable) {
  set("DEVICES", "0");
  EXPECT_EQ(try_driver(), TN_E_UNAVAILABLE);
  EXPECT_TRUE(says("no device")) << diag_.msg;
  EXPECT_TRUE(says("try: ")) << diag_.msg;
}

TEST_F(Route, an_absent_library_is_named_with_what_to_install) {
  config_[is_cuda() ? "cuda.libcuda" : "rocm.libamdhip64"] = "/nowhere/libdriver.so.1";
  EXPECT_EQ(try_driver(), TN_E_UNAVAILABLE);
  EXPECT_TRUE(says("/nowhere/libdriver.so.1")) << diag_.msg;
  EXPECT_TRUE(says(is_cuda() ? "libcuda1" : "libamdhip64")) << diag_.msg;
}

TEST_F(Route, an_absent_compiler_is_named_with_what_to_install) {
  config_[is_cuda() ? "cuda.libnvrtc" : "rocm.libhiprtc"] = "/nowhere/librtc.so";
  EXPECT_EQ(try_driver(), TN_E_UNAVAILABLE);
  EXPECT_TRUE(says("/nowhere/librtc.so")) << diag_.msg;
  EXPECT_TRUE(says(is_cuda() ? "libnvrtc" : "hiprtc")) << diag_.msg;
}

TEST_F(Route, a_library_that_is_no_driver_is_refused_with_the_missing_symbol) {
  config_[is_cuda() ? "cuda.libcuda" : "rocm.libamdhip64"] = "libm.so.6";
  EXPECT_EQ(try_driver(), TN_E_UNAVAILABLE);
  EXPECT_TRUE(says(is_cuda() ? "cuInit" : "hipInit")) << diag_.msg;
}

TEST_F(Route, a_driver_that_does_not_start_says_why) {
  struct Case { int code; const char *cuda, *hip; };
  for (const Case& c : {Case{34, "stub", "34"}, {35, "35", "too old"}, {100, "no device", "no device"}, {101, "101", "no device"}, {802, "fabricmanager", "802"}, {803, "do not fit", "803"}, {999, "999", "999"}}) {
    set("INIT", std::to_string(c.code));
    EXPECT_EQ(try_driver(), TN_E_UNAVAILABLE) << c.code;
    EXPECT_TRUE(says(is_cuda() ? c.cuda : c.hip)) << diag_.msg;
    EXPECT_LT(diag_.len, 223u) << "cut: " << diag_.msg;
  }
}

TEST_F(Route, a_text_with_a_mistake_comes_back_with_the_compilers_words) {
  std::string binary;
  EXPECT_EQ(device().compile(scale_spec(), "extern \"C\" __global__ void scale() { this_name_is_not_known; }", {}, &binary, &diag_), TN_E_FAILED);
  EXPECT_TRUE(says("this_name_is_not_known")) << diag_.msg;
  EXPECT_TRUE(says("scale")) << diag_.msg;
}

TEST_F(Route, a_binary_of_something_else_is_refused) {
  std::unique_ptr<Kernel> k;
  EXPECT_EQ(device().load(scale_spec(), {}, std::string(1000, 'x'), &k, &diag_), TN_E_FAILED);
  EXPECT_EQ(diag_.native_code, 200);
}

TEST_F(Route, several_threads_compile_at_once) {
  Device& d = device();
  std::vector<std::thread> threads;
  std::vector<tn_status> results(4, TN_E_BUG);
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      std::string binary;
      std::unique_ptr<Kernel> k;
      results[i] = d.compile(scale_spec(), kScale, {}, &binary, nullptr);
      if (results[i] == TN_OK) results[i] = d.load(scale_spec(), {}, binary, &k, nullptr);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(results, std::vector<tn_status>(4, TN_OK));
}

TEST_F(Route, the_cache_key_names_compiler_driver_architecture_and_options) {
  const std::string key = device().cache_key();
  for (const char* part : {is_cuda() ? "NVRTC 13.0" : "hiprtc 6.2", is_cuda() ? "CUDA 13.0" : "HIP 6.2", is_cuda() ? "sm_90" : "gfx90a", is_cuda() ? "--fmad=false" : "-ffp-contract=off", "double"})
    EXPECT_NE(key.find(part), std::string::npos) << key;
}

TEST_F(Route, a_refused_launch_is_no_loss) {
  const auto k = kernel(scale_spec(), kScale);
  const Memory x = upload(count_up(64));
  set("LAUNCH_FAILS_AT", "1");
  EXPECT_EQ(launch(*k, {{x.handle, 0, 256}, {x.handle, 0, 256}}, block(64u, 1.0f), 1, 64), TN_E_FAILED);
  EXPECT_TRUE(says("scale")) << diag_.msg;
  EXPECT_EQ(diag_.native_code, 701);
  EXPECT_EQ(device().health(&diag_), TN_OK);
  EXPECT_EQ(launch(*k, {{x.handle, 0, 256}, {x.handle, 0, 256}}, block(64u, 1.0f), 1, 64), TN_OK);
  EXPECT_EQ(launch(*k, {{x.handle, 0, 256}, {x.handle, 0, 256}}, block(64u, 1.0f), 1, 128), TN_E_FAILED) << "more threads than the kernel was compiled for";
}

TEST_F(Route, a_lost_device_stays_lost) {
  for (const char* mode : {"", "1000"}) {
    stream_.reset(), device_.reset();
    Double::get().reset();
    set("ASYNC", mode);
    const auto k = kernel(scale_spec(), kScale);
    const Memory x = upload(count_up(64));
    set("LOST_AT", "2");
    for (int i = 0; i < 2; ++i) EXPECT_EQ(launch(*k, {{x.handle, 0, 256}, {x.handle, 0, 256}}, block(64u, 1.0f), 1, 64), TN_OK) << "the loss shows later";
    EXPECT_EQ(finish(), TN_E_DEVICE_LOST);
    EXPECT_TRUE(says("719")) << diag_.msg;
    Memory m;
    EXPECT_EQ(device().alloc(64, 64, false, &m, &diag_), TN_E_DEVICE_LOST);
    EXPECT_EQ(device().health(&diag_), TN_E_DEVICE_LOST);
    EXPECT_TRUE(says("719")) << diag_.msg;
    EXPECT_EQ(launch(*k, {{x.handle, 0, 256}, {x.handle, 0, 256}}, block(64u, 1.0f), 1, 64), TN_E_DEVICE_LOST);
    EXPECT_EQ(diag_.native_code, 719);
    EXPECT_EQ(diag_.native_domain, is_cuda() ? uint32_t{TN_KIND_CUDA} : uint32_t{TN_KIND_HIP});
    Double::get().reset();  // so that what remains can be freed
  }
}

// ---- what the doubles find

TEST_F(Route, a_store_behind_the_end_is_found) {
  set("ALIGN", "16");
  const auto k = kernel(scale_spec(), kScale);
  const Memory x = upload(count_up(64)), y = alloc(256);
  ASSERT_EQ(launch(*k, {{x.handle, 0, 256}, {y.handle, 16, 256}}, block(64u, 1.0f), 1, 64), TN_OK);
  EXPECT_EQ(finish(), TN_E_DEVICE_LOST);
  EXPECT_TRUE(says("700")) << diag_.msg;
  Double::get().reset();
}

TEST_F(Route, a_store_between_blocks_is_found) {
  const auto k = kernel(scale_spec(), kScale);
  const Memory x = upload(count_up(64)), y = alloc(240);  // 16 bytes to the next multiple of 256
  ASSERT_EQ(launch(*k, {{x.handle, 0, 256}, {y.handle, 0, 240}}, block(61u, 1.0f), 1, 64), TN_OK);
  EXPECT_EQ(finish(), TN_E_DEVICE_LOST);
  Double::get().reset();
  leaks_allowed_ = true;
}

// Each thread shows its neighbour's number; without the barrier some read what the block has not written yet.
std::string neighbour(bool with_barrier) {
  return std::string(R"(
extern "C" __global__ void __launch_bounds__(64) neighbour(float* y) {
  __shared__ float shown[64];
  shown[threadIdx.x] = (float)threadIdx.x;
)") + (with_barrier ? "  __syncthreads();\n" : "") +
         "  y[threadIdx.x] = shown[threadIdx.x == 0 ? 0 : threadIdx.x - 1];\n}\n";
}

TEST_F(Route, a_missing_barrier_shows_in_one_order_of_threads) {
  for (bool with_barrier : {true, false})
    for (const char* order : {"forward", "reverse"}) {
      set("FIBERS", order);
      const auto k = kernel(spec("neighbour", 1, {}), neighbour(with_barrier));
      const Memory y = alloc(256);
      ASSERT_EQ(launch(*k, {{y.handle, 0, 256}}, "", 1, 64), TN_OK) << diag_.msg;
      const auto got = download<float>(y, 64);
      bool right = true;
      for (int i = 0; i < 64; ++i) right = right && got[i] == float(i == 0 ? 0 : i - 1);
      EXPECT_EQ(right, with_barrier || std::string(order) == "forward") << order;
    }
}

TEST_F(Route, a_barrier_that_some_threads_miss_is_found) {
  const auto k = kernel(spec("half", 1, {}), R"(
extern "C" __global__ void __launch_bounds__(64) half(float* y) {
  if (threadIdx.x < 32) __syncthreads();
  y[threadIdx.x] = 1.0f;
}
)");
  const Memory y = alloc(256);
  ASSERT_EQ(launch(*k, {{y.handle, 0, 256}}, "", 1, 64), TN_OK);
  EXPECT_EQ(finish(), TN_E_DEVICE_LOST);
  EXPECT_TRUE(says("719")) << diag_.msg;
  Double::get().reset();
}

TEST_F(Route, local_memory_holds_nothing_from_the_block_before) {
  const auto k = kernel(spec("unset", 1, {}, 1), R"(
extern "C" __global__ void __launch_bounds__(1) unset(float* y) {
  __shared__ float sum;
  sum += 1.0f;
  y[blockIdx.x] = sum;
}
)");
  const Memory y = alloc(8);
  ASSERT_EQ(launch(*k, {{y.handle, 0, 8}}, "", 2, 1), TN_OK);
  for (float v : download<float>(y, 2)) EXPECT_NE(v, v);
}

TEST_F(Route, lanes_of_both_widths_exchange_values) {
  const std::string text = std::string(R"(
extern "C" __global__ void __launch_bounds__(128) sum(const float* x, float* y) {
  float s = x[threadIdx.x];
  for (int d = warpSize / 2; d > 0; d >>= 1) s += )") +
                           (is_cuda() ? "__shfl_xor_sync(0xffffffffu, s, d)" : "__shfl_xor(s, d)") + ";\n  y[threadIdx.x] = s;\n}\n";
  for (uint32_t warp : {32u, 64u}) {
    stream_.reset(), device_.reset(), driver_.reset();
    set("WARP", std::to_string(warp));
    EXPECT_EQ(device().caps().subgroup_min, warp);
    const auto k = kernel(spec("sum", 2, {}, 128), text);
    const Memory x = upload(count_up(128)), y = alloc(512);
    ASSERT_EQ(launch(*k, {{x.handle, 0, 512}, {y.handle, 0, 512}}, "", 1, 128), TN_OK);
    const auto got = download<float>(y, 128);
    for (uint32_t i = 0; i < 128; ++i) {
      const uint32_t first = i / warp * warp;
      ASSERT_EQ(got[i], float(warp) * float(2 * first + warp - 1) / 2) << i;
    }
  }
}

TEST_F(Route, atomics_of_all_blocks_add_up) {
  const auto k = kernel(spec("tally", 1, {}), R"(
extern "C" __global__ void __launch_bounds__(64) tally(unsigned* y) {
  atomicAdd(&y[0], 1u);
  atomicMax(&y[1], blockIdx.x * 64u + threadIdx.x);
  atomicCAS(&y[2], 0u, blockIdx.x + 5u);
}
)");
  const Memory y = upload(std::vector<uint32_t>(4));
  ASSERT_EQ(launch(*k, {{y.handle, 0, 16}}, "", 10, 64), TN_OK);
  EXPECT_EQ(download<uint32_t>(y, 3), (std::vector<uint32_t>{640, 639, 5}));
}

TEST_F(Route, writes_out_of_range_of_copies_are_refused) {
  const Memory m = alloc(64);
  std::vector<float> x(32);
  EXPECT_EQ(stream().copy({m.handle, 0, nullptr}, {0, 0, x.data()}, 128, &diag_), TN_E_FAILED);
  EXPECT_EQ(diag_.native_code, 1);
}

}  // namespace
}  // namespace tenon::gpu::test
