// The life of a plugin that is loaded and unloaded many times; unloading what is in use.
#include <gtest/gtest.h>
#include <malloc.h>
#include <tenon/ops.h>
#include <tenon/runtime.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

class Runtime {
 public:
  Runtime() {
    tn_runtime_options options{};
    options.size = sizeof options;
    options.flags = TN_RT_NO_SEARCH;
    options.threads = 1;
    diag.size = sizeof diag;
    EXPECT_EQ(tn_runtime_create(&options, &rt, &diag), TN_OK) << diag.msg;
  }
  ~Runtime() { EXPECT_EQ(tn_runtime_destroy(rt, TN_FOREVER, &diag), TN_OK) << diag.msg; }
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  uint32_t load(const std::string& name) {
    uint32_t index = TN_NONE;
    EXPECT_EQ(tn_plugin_load(rt, (std::string(FAULT_DIR "/") + name + ".so").c_str(), &index, &diag), TN_OK) << diag.msg;
    return index;
  }
  tn_status unload(uint32_t index) { return tn_plugin_unload(rt, index, TN_FOREVER, &diag); }
  uint32_t device(const std::string& name) {
    uint32_t id = 0;
    EXPECT_EQ(tn_device_find(rt, name.c_str(), TN_POLICY_REQUIRE, &id, &diag), TN_OK) << diag.msg;
    return id;
  }
  tn_queue* queue(uint32_t device) {
    tn_queue* q = nullptr;
    EXPECT_EQ(tn_queue_get(rt, device, &q, &diag), TN_OK) << diag.msg;
    return q;
  }
  tn_tensor* floats(tn_queue* q, float value) {
    tn_type type{};
    type.dtype = TN_F32, type.rank = 1, type.dim[0] = 100, type.stride[0] = 1;
    uint32_t id = 0;
    tn_tensor* t = nullptr;
    const std::vector<float> values(100, value);
    EXPECT_EQ(tn_type_intern(rt, &type, &id, &diag), TN_OK) << diag.msg;
    EXPECT_EQ(tn_tensor_create(q, id, &t, &diag), TN_OK) << diag.msg;
    EXPECT_EQ(tn_tensor_write(q, t, values.data(), 400, &diag), TN_OK) << diag.msg;
    return t;
  }
  // 3 + 4 on the device.
  void use(const std::string& name) {
    tn_queue* q = queue(device(name));
    uint32_t op = 0;
    ASSERT_EQ(tn_op_find(rt, "add", 0, &op, &diag), TN_OK);
    tn_tensor* in[] = {floats(q, 3), floats(q, 4)};
    tn_tensor* out = nullptr;
    const tn_call_args args{op, 0, 0, 0, 2, 1, in, &out, nullptr};
    std::vector<float> result(100);
    ASSERT_EQ(tn_call(q, &args, &diag), TN_OK) << diag.msg;
    ASSERT_EQ(tn_tensor_read(q, out, result.data(), 400, &diag), TN_OK) << diag.msg;
    EXPECT_EQ(result, std::vector<float>(100, 7.0f));
    for (tn_tensor* t : {in[0], in[1], out}) tn_tensor_release(t);
  }
  tn_plugin_entry entry(uint32_t index) {
    uint32_t n = 0;
    tn_plugins(rt, nullptr, 0, 0, &n, nullptr);
    std::vector<tn_plugin_entry> all(n);
    tn_plugins(rt, all.data(), sizeof all[0], n, &n, nullptr);
    return index < n ? all[index] : tn_plugin_entry{};
  }

  tn_runtime* rt = nullptr;
  tn_diag diag{};
};

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;  // its heap is its own: it maps, keeps and counts as it likes, and finds leaks itself
#else
constexpr bool kSanitized = false;
#endif

struct Held {
  size_t maps = 0, descriptors = 0, heap_bytes = 0, threads = 0;
};

Held held() {
  Held h;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++h.maps;
  for ([[maybe_unused]] const auto& e : fs::directory_iterator("/proc/self/fd")) ++h.descriptors;
  for ([[maybe_unused]] const auto& e : fs::directory_iterator("/proc/self/task")) ++h.threads;
  h.heap_bytes = mallinfo2().uordblks;
  return h;
}

}  // namespace

// microsoft/onnxruntime#5384, #24539: loading, unloading and loading again crashes, or grows.
TEST(Life, onnxruntime_5384_loading_using_and_unloading_a_thousand_times_holds_no_more_than_ten_times) {
  Runtime r;
  const auto round = [&] {
    const uint32_t index = r.load("good");
    r.use("good:0");
    ASSERT_EQ(r.unload(index), TN_OK) << r.diag.msg;
  };
  for (int i = 0; i < 10; ++i) round();
  const Held before = held();
  const int rounds = kSanitized ? 200 : 1000;
  for (int i = 0; i < rounds && !HasFatalFailure(); ++i) round();
  const Held after = held();
  if (!kSanitized) { EXPECT_EQ(after.maps, before.maps); }
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_EQ(after.threads, before.threads);
  EXPECT_LE(after.heap_bytes, before.heap_bytes + 16 * 1024) << "bytes a round: " << static_cast<double>(after.heap_bytes - before.heap_bytes) / rounds;
}

TEST(Life, onnxruntime_5384_a_plugin_that_is_loaded_again_has_its_number_and_its_devices_have_theirs) {
  Runtime r;
  const uint32_t index = r.load("good"), device = r.device("good:0");
  ASSERT_EQ(r.unload(index), TN_OK);
  EXPECT_EQ(r.entry(index).code, 22u);
  uint32_t id = 0;
  EXPECT_NE(tn_device_find(r.rt, "good:0", TN_POLICY_REQUIRE, &id, &r.diag), TN_OK);
  EXPECT_NE(std::strstr(r.diag.msg, "its plugin was unloaded"), nullptr) << r.diag.msg;
  EXPECT_EQ(r.load("good"), index);
  EXPECT_EQ(r.device("good:0"), device);
  r.use("good:0");
}

TEST(Life, a_device_of_another_file_takes_the_name_of_one_that_is_gone) {
  const std::string copy = "/tmp/tenon_life_" + std::to_string(getpid()) + ".so";
  fs::copy_file(FAULT_DIR "/good.so", copy, fs::copy_options::overwrite_existing);
  Runtime r;
  const uint32_t index = r.load("good"), device = r.device("good:0");
  ASSERT_EQ(r.unload(index), TN_OK);
  uint32_t other = 0;
  ASSERT_EQ(tn_plugin_load(r.rt, copy.c_str(), &other, &r.diag), TN_OK) << r.diag.msg;
  EXPECT_NE(other, index);
  EXPECT_NE(r.device("good:0"), device);
  r.use("good:0");
  fs::remove(copy);
}

TEST(Life, onnxruntime_5384_unloading_is_refused_while_a_tensor_lives_and_names_the_plugin_and_the_device) {
  Runtime r;
  const uint32_t index = r.load("good");
  tn_tensor* t = r.floats(r.queue(r.device("good:0")), 1);
  EXPECT_EQ(r.unload(index), TN_E_BUSY);
  EXPECT_NE(std::strstr(r.diag.msg, "plugin test.good is in use"), nullptr) << r.diag.msg;
  EXPECT_NE(std::strstr(r.diag.msg, "tensors live on good:0"), nullptr) << r.diag.msg;
  EXPECT_EQ(r.entry(index).code, 0u);
  r.use("good:0");  // nothing has happened
  tn_tensor_release(t);
  EXPECT_EQ(r.unload(index), TN_OK) << r.diag.msg;
}

TEST(Life, a_plugin_that_counts_a_live_object_for_ever_is_not_unloaded) {
  Runtime r;
  const uint32_t index = r.load("lie_live");
  EXPECT_EQ(r.unload(index), TN_E_BUSY);
  EXPECT_NE(std::strstr(r.diag.msg, "it counts 1 live objects"), nullptr) << r.diag.msg;
}

TEST(Life, what_a_plugin_has_not_given_back_is_named_when_it_is_unloaded) {
  Runtime r;
  const uint32_t index = r.load("leak");
  ASSERT_EQ(r.unload(index), TN_OK);
  EXPECT_STREQ(r.entry(index).cause, "by tn_plugin_unload; it has not given back 3 blocks of host memory, 3000 bytes");
}

TEST(Life, the_second_or_any_allocation_may_fail_and_only_that_call_does) {
  for (int nth = 1; nth <= 4; ++nth) {
    setenv("TENON_CONFIG", ("fault.nth=" + std::to_string(nth)).c_str(), 1);
    Runtime r;
    unsetenv("TENON_CONFIG");
    r.load("fail_alloc");
    tn_queue* q = r.queue(r.device("fail_alloc:0"));
    tn_type type{};
    type.dtype = TN_F32, type.rank = 1, type.dim[0] = 100, type.stride[0] = 1;
    uint32_t id = 0;
    ASSERT_EQ(tn_type_intern(r.rt, &type, &id, &r.diag), TN_OK);
    std::vector<tn_tensor*> made;
    for (int i = 1; i <= 4; ++i) {
      tn_tensor* t = nullptr;
      EXPECT_EQ(tn_tensor_create(q, id, &t, &r.diag), i == nth ? TN_E_OOM : TN_OK) << nth << " " << i;
      if (t != nullptr) made.push_back(t);
    }
    r.use("cpu:0");
    for (tn_tensor* t : made) tn_tensor_release(t);
  }
}
