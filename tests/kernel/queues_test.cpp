// Several queues and threads at once; best run under the thread sanitizer too.
#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/kernel/harness.h"

extern "C" const tn_plugin* tn_plugin_query(uint32_t abi, const tn_host* host);

namespace tenon::test {
namespace {

// The simulated accelerator beside the CPU: its work is asynchronous.
class Queues : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    slot = runtime->core.add_slot();
    std::snprintf(slot->entry.id, sizeof slot->entry.id, "dev.tenon.sim");
    slot->table = tn_plugin_query(TN_ABI_CURRENT, &slot->host);
    ASSERT_NE(slot->table, nullptr);
    runtime->core.set_config("sim.latency_ns", latency_ns());
    TN_ASSERT_OK(runtime->core.attach(slot, diag));
    TN_ASSERT_OK(tn_device_find(runtime.get(), "sim:0", TN_POLICY_REQUIRE, &sim, diag));
  }

  kernel::PluginSlot* slot = nullptr;
  virtual const char* latency_ns() const { return "200000"; }

  tn_tensor* tensor_on(tn_queue* q, const std::vector<float>& values) {
    tn_tensor* t = nullptr;
    tn_diag d{};
    EXPECT_EQ(tn_tensor_create(q, type(TN_F32, {static_cast<int64_t>(values.size())}), &t, &d), TN_OK) << d.msg;
    EXPECT_EQ(tn_tensor_write(q, t, values.data(), values.size() * 4, &d), TN_OK) << d.msg;
    return t;
  }

  // Into `out` where it is given, else into a new tensor.
  tn_tensor* sum(tn_queue* q, tn_tensor* a, tn_tensor* b, uint32_t add, tn_tensor* out = nullptr) {
    tn_tensor* in[2] = {a, b};
    tn_diag d{};
    const tn_call_args args{add, 0, 0, 0, 2, 1, in, &out, nullptr};
    EXPECT_EQ(tn_call(q, &args, &d), TN_OK) << d.msg;
    return out;
  }

  uint32_t sim = 0;
};

TEST_F(Queues, that_read_each_others_results_do_not_block_each_other) {
  const uint32_t add = op("add");
  tn_queue* queues[2] = {};
  tn_tensor* values[2] = {};
  for (int i = 0; i < 2; ++i) {
    TN_ASSERT_OK(tn_queue_create(runtime.get(), sim, 0, &queues[i], diag));
    values[i] = tensor_on(queues[i], {1, 2, 3});
  }
  std::vector<tn_tensor*> mine[2];
  std::atomic<tn_tensor*> last[2] = {values[0], values[1]};
  auto work = [&](int i) {
    for (int n = 0; n < 300; ++n) {
      mine[i].push_back(sum(queues[i], last[1 - i].load(), values[i], add));
      last[i] = mine[i].back();
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  for (int i = 0; i < 2; ++i) {
    float got[3];
    TN_ASSERT_OK(tn_tensor_read(queues[i], mine[i].front(), got, sizeof got, diag));
    EXPECT_GE(got[0], 2);
  }
  for (int i = 0; i < 2; ++i) {
    for (tn_tensor* t : mine[i]) tn_tensor_release(t);
    tn_tensor_release(values[i]);
  }
  for (tn_queue* q : queues) TN_ASSERT_OK(tn_queue_destroy(q, diag));
}

TEST_F(Queues, write_over_a_tensor_in_the_order_of_the_calls) {
  const uint32_t add = op("add");
  tn_queue* slow = nullptr;
  TN_ASSERT_OK(tn_queue_create(runtime.get(), sim, 0, &slow, diag));
  tn_queue* fast = nullptr;
  TN_ASSERT_OK(tn_queue_create(runtime.get(), sim, 0, &fast, diag));
  tn_tensor *one = tensor_on(slow, {1}), *two = tensor_on(fast, {2}), *x = tensor_on(slow, {0});
  for (int n = 0; n < 10; ++n) tn_tensor_release(sum(slow, one, one, add));
  sum(slow, one, one, add, x);
  sum(fast, two, two, add, x);
  tn_point end;
  tn_queue_point(slow, &end);
  TN_ASSERT_OK(tn_wait(runtime.get(), &end, 1, TN_FOREVER, diag));
  float got = 0;
  TN_ASSERT_OK(tn_tensor_read(fast, x, &got, sizeof got, diag));
  EXPECT_EQ(got, 4);
  for (tn_tensor* t : {one, two, x}) tn_tensor_release(t);
  for (tn_queue* q : {slow, fast}) TN_ASSERT_OK(tn_queue_destroy(q, diag));
}

TEST_F(Queues, read_a_tensor_that_was_released_before_they_came_to_it) {
  const uint32_t add = op("add");
  tn_queue *home = nullptr, *slow = nullptr;
  TN_ASSERT_OK(tn_queue_create(runtime.get(), sim, 0, &home, diag));
  TN_ASSERT_OK(tn_queue_create(runtime.get(), sim, 0, &slow, diag));
  tn_tensor *one = tensor_on(slow, {1}), *x = tensor_on(home, {2});
  for (int n = 0; n < 10; ++n) tn_tensor_release(sum(slow, one, one, add));
  tn_tensor* y = sum(slow, x, x, add);
  tn_tensor_release(x);
  tn_tensor* z = tensor_on(home, {100});  // may get the memory of x only when y is done
  float got = 0;
  TN_ASSERT_OK(tn_tensor_read(slow, y, &got, sizeof got, diag));
  EXPECT_EQ(got, 4);
  for (tn_tensor* t : {one, y, z}) tn_tensor_release(t);
  for (tn_queue* q : {home, slow}) TN_ASSERT_OK(tn_queue_destroy(q, diag));
}

TEST_F(Queues, keep_their_pools_apart_while_another_thread_trims) {
  const uint32_t t = type(TN_F32, {64});
  tn_queue* own = nullptr;
  TN_ASSERT_OK(tn_queue_create(runtime.get(), cpu, 0, &own, diag));
  std::atomic<bool> stop{false};
  std::thread trimmer([&] {
    while (!stop) EXPECT_EQ(tn_memory_trim(runtime.get(), cpu, nullptr), TN_OK);
  });
  for (int n = 0; n < 20000; ++n) {
    tn_tensor *a = nullptr, *b = nullptr;
    ASSERT_EQ(tn_tensor_create(own, t, &a, nullptr), TN_OK);
    ASSERT_EQ(tn_tensor_create(own, t, &b, nullptr), TN_OK);
    ASSERT_NE(a, b);
    tn_tensor_release(a);
    tn_tensor_release(b);
  }
  stop = true;
  trimmer.join();
  TN_ASSERT_OK(tn_queue_destroy(own, diag));
}

TEST_F(Queues, have_done_their_work_before_their_memory_goes_back_to_the_device) {
  const uint32_t add = op("add");
  tn_queue* q = nullptr;
  TN_ASSERT_OK(tn_queue_get(runtime.get(), sim, &q, diag));
  TN_ASSERT_OK(tn_memory_limit(runtime.get(), sim, 1 << 20, diag));
  for (int n = 0; n < 5; ++n) {
    tn_tensor* x = tensor_on(q, std::vector<float>(1 << 16, 1.f));
    for (int k = 0; k < 8; ++k) tn_tensor_release(sum(q, x, x, add));
    tn_tensor_release(x);
    tn_tensor* large = nullptr;  // fits only once the rest is given back
    TN_ASSERT_OK(tn_tensor_create(q, type(TN_F32, {200000}), &large, diag));
    tn_tensor_release(large);
  }
}

// Kernels are retired before their queues are closed, and not under work that still runs them.
TEST_F(Queues, are_emptied_before_the_runtime_ends_whatever_the_timeout) {
  const uint32_t add = op("add");
  tn_queue* q = nullptr;
  TN_ASSERT_OK(tn_queue_create(runtime.get(), sim, 0, &q, diag));
  tn_tensor* x = tensor_on(q, {1, 2});
  for (int n = 0; n < 50; ++n) tn_tensor_release(sum(q, x, x, add));
  tn_tensor_release(x);
  TN_ASSERT_OK(runtime->core.shut_down(0, diag));
}

// 50 launches of 0.2 ms each are under way.
TEST_F(Queues, tell_which_device_is_still_at_work) {
  const uint32_t add = op("add");
  tn_queue* q = nullptr;
  TN_ASSERT_OK(tn_queue_create(runtime.get(), sim, 0, &q, diag));
  tn_tensor* x = tensor_on(q, {1, 2});
  for (int n = 0; n < 50; ++n) tn_tensor_release(sum(q, x, x, add));
  const kernel::Device* busy = runtime->core.still_working(0);
  ASSERT_NE(busy, nullptr);
  EXPECT_STREQ(busy->name, "sim:0");
  tn_diag why{};
  why.size = sizeof why;
  EXPECT_EQ(runtime->core.detach(slot, 0, &why), TN_E_BUSY);
  EXPECT_NE(std::string(why.msg).find("work on sim:0 is still running"), std::string::npos) << why.msg;
  EXPECT_EQ(runtime->core.still_working(TN_FOREVER), nullptr);
  EXPECT_EQ(runtime->core.still_working(0), nullptr);
  tn_tensor_release(x);
}

// Its simulated accelerator answers at once.
class LongQueue : public Queues {
 protected:
  const char* latency_ns() const override { return "0"; }
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kManyCalls = 20000;
#else
constexpr int kManyCalls = 100000;
#endif

TEST_F(LongQueue, keeps_few_records_though_nobody_waits) {
  const uint32_t add = op("add");
  tn_queue *home = nullptr, *q = nullptr;
  TN_ASSERT_OK(tn_queue_create(runtime.get(), sim, 0, &home, diag));
  TN_ASSERT_OK(tn_queue_create(runtime.get(), sim, 0, &q, diag));
  tn_tensor *x = tensor_on(home, {1, 2}), *y = sum(q, x, x, add);  // x is of another queue's pool: it is held, call by call
  size_t most = 0;
  for (int n = 0; n < kManyCalls; ++n) {
    tn_tensor* z = sum(q, x, y, add);
    tn_tensor_release(y);
    y = z;
    most = std::max({most, q->log.size(), q->held.size()});
  }
  EXPECT_LE(most, kernel::kLogMost + kernel::kLogQuery);
  tn_memory_info info{};
  info.size = sizeof info;
  TN_ASSERT_OK(tn_memory_stats(runtime.get(), sim, &info, diag));
  EXPECT_LT(info.peak, 1u << 20);
  float got[2];
  TN_ASSERT_OK(tn_tensor_read(q, y, got, sizeof got, diag));
  EXPECT_EQ(got[0], kManyCalls + 2);
  EXPECT_EQ(got[1], 2 * kManyCalls + 4);
  tn_tensor_release(x);
  tn_tensor_release(y);
  for (tn_queue* one : {home, q}) TN_ASSERT_OK(tn_queue_destroy(one, diag));
}

TEST_F(LongQueue, tells_a_failure_that_happened_long_before) {
  const uint32_t gather = op("gather"), add = op("add");
  tn_queue* q = nullptr;
  TN_ASSERT_OK(tn_queue_create(runtime.get(), sim, 0, &q, diag));
  tn_tensor *x = tensor_on(q, {1, 2}), *index = nullptr, *bad = nullptr;
  TN_ASSERT_OK(tn_tensor_create(q, type(TN_I64, {1}), &index, diag));
  const int64_t nine = 9;
  TN_ASSERT_OK(tn_tensor_write(q, index, &nine, 8, diag));
  tn_attr axis{};
  axis.key = TN_KEY_AXIS, axis.type = TN_ATTR_I64;
  uint32_t attr = 0;
  TN_ASSERT_OK(tn_attr_intern(runtime.get(), gather, &axis, 1, &attr, diag));
  tn_tensor* in[2] = {x, index};
  const tn_call_args args{gather, attr, 0, 0, 2, 1, in, &bad, nullptr};
  TN_ASSERT_OK(tn_call(q, &args, diag));
  tn_tensor* depends = sum(q, bad, bad, add);
  for (int n = 0; n < 5000; ++n) tn_tensor_release(sum(q, x, x, add));  // the records of both are let go meanwhile
  float got = 0;
  EXPECT_EQ(tn_tensor_read(q, depends, &got, 4, nullptr), TN_E_DEPENDS);
  for (tn_tensor* t : {x, index, bad, depends}) tn_tensor_release(t);
  TN_ASSERT_OK(tn_queue_destroy(q, diag));
}

TEST_F(Queues, of_ending_threads_and_an_ending_runtime_do_not_meet) {
  for (int n = 0; n < 200; ++n) {
    auto own = std::make_unique<tn_runtime>(nullptr);
    kernel::PluginSlot* slot = own->core.add_slot();
    std::snprintf(slot->entry.id, sizeof slot->entry.id, "%s", TN_REFERENCE_ID);
    slot->table = tn_reference_query(TN_ABI_CURRENT, &slot->host);
    TN_ASSERT_OK(own->core.attach(slot, diag));
    std::atomic<bool> used{false};
    std::thread user([&] {
      uint32_t device = 0;
      tn_queue* q = nullptr;
      EXPECT_EQ(tn_device_find(own.get(), "cpu:0", TN_POLICY_REQUIRE, &device, nullptr), TN_OK);
      EXPECT_EQ(tn_queue_get(own.get(), device, &q, nullptr), TN_OK);
      used = true;
    });
    while (!used) std::this_thread::yield();
    own.reset();  // while the thread ends and gives its queue up
    user.join();
  }
}

}  // namespace
}  // namespace tenon::test
