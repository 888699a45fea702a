// Events: what a chain of calls did, in the order in which it ended; and that nobody hears old hooks.
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "tests/kernel/harness.h"

namespace tenon::test {
namespace {

struct Heard {
  uint32_t kind, op, queue;
  uint64_t value, begin_ns, end_ns, flops, bytes;
  std::string name, where;
};

class Trace : public RuntimeTest {
 protected:
  void listen(uint32_t mask) {
    tn_hooks hooks{};
    hooks.size = sizeof hooks;
    hooks.trace_mask = mask;
    hooks.ctx = this;
    hooks.event = [](void* ctx, const tn_event* e) {
      auto* self = static_cast<Trace*>(ctx);
      std::lock_guard lock(self->mutex);
      self->heard.push_back({e->kind, e->op, e->queue, e->value, e->begin_ns, e->end_ns, e->flops, e->bytes, e->name ? e->name : "", e->where ? e->where : ""});
    };
    TN_ASSERT_OK(tn_set_hooks(runtime.get(), &hooks, diag));
  }
  std::vector<Heard> of(uint32_t kind) {
    std::vector<Heard> some;
    for (const Heard& h : heard)
      if (h.kind == kind) some.push_back(h);
    return some;
  }
  std::mutex mutex;
  std::vector<Heard> heard;
};

constexpr uint32_t kAll = ~0u;

TEST_F(Trace, is_a_feature) { EXPECT_EQ(tn_feature("trace"), 1); }

TEST_F(Trace, tells_each_call_and_each_kernel_once) {
  tn_tensor* x = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  const uint32_t add = op("add"), mul = op("mul");
  listen(1 << TN_EVENT_CALL | 1 << TN_EVENT_KERNEL);
  tn_queue_note(queue, "app.cpp:7");
  for (int i = 0; i < 2; ++i) {  // a miss, then a hit of the plan cache
    tn_tensor *a = call(add, 0, {x, x})[0], *b = call(mul, 0, {a, x})[0];
    tn_tensor_release(a);
    tn_tensor_release(b);
  }
  const std::vector<Heard> calls = of(TN_EVENT_CALL), kernels = of(TN_EVENT_KERNEL);
  ASSERT_EQ(calls.size(), 4u);
  ASSERT_EQ(kernels.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(calls[i].name, i % 2 ? "mul" : "add");
    EXPECT_EQ(calls[i].op, i % 2 ? mul : add);
    EXPECT_EQ(calls[i].where, "app.cpp:7");
    EXPECT_EQ(kernels[i].where, "app.cpp:7");
    EXPECT_EQ(kernels[i].name, "reference.pointwise");
    EXPECT_EQ(kernels[i].value, calls[i].value);
    EXPECT_EQ(kernels[i].bytes, 6u * 4 * 3) << "two operands and a result";
    EXPECT_EQ(kernels[i].flops, 6u);
    EXPECT_LE(calls[i].begin_ns, kernels[i].begin_ns);
    EXPECT_LE(kernels[i].begin_ns, kernels[i].end_ns);
    EXPECT_LE(kernels[i].end_ns, calls[i].end_ns);
    if (i) {
      EXPECT_EQ(calls[i].value, calls[i - 1].value + 1);
    }
  }
  tn_tensor_release(x);
}

TEST_F(Trace, tells_the_kernels_of_an_expansion_within_its_call) {
  tn_tensor* x = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  listen(kAll);
  tn_tensor* y = call(op("softmax"), 0, {x})[0];
  const std::vector<Heard> calls = of(TN_EVENT_CALL), kernels = of(TN_EVENT_KERNEL), compiled = of(TN_EVENT_COMPILE);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_GE(kernels.size(), 3u) << "maximum, sum, and what is between";
  EXPECT_EQ(compiled.size(), kernels.size()) << "each was prepared on the way";
  for (const Heard& h : heard) {
    EXPECT_LE(calls[0].begin_ns, h.begin_ns);
    EXPECT_LE(h.end_ns, calls[0].end_ns);
  }
  EXPECT_EQ(heard.back().kind, uint32_t{TN_EVENT_CALL}) << "a call is told when it is over";
  tn_tensor_release(x);
  tn_tensor_release(y);
}

TEST_F(Trace, tells_copies_and_allocations_with_their_bytes) {
  listen(1 << TN_EVENT_COPY | 1 << TN_EVENT_ALLOC);
  tn_tensor *a = tensor({1000}, std::vector<float>(1000, 1.f)), *b = tensor({1000}, std::vector<float>(1000, 2.f));
  TN_ASSERT_OK(tn_tensor_copy(queue, a, b, diag));
  read(a);
  std::vector<std::string> names;
  for (const Heard& h : of(TN_EVENT_COPY)) {
    names.push_back(h.name);
    EXPECT_EQ(h.bytes, 4000u);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"write", "write", "copy", "read"}));
  const std::vector<Heard> allocated = of(TN_EVENT_ALLOC);
  ASSERT_EQ(allocated.size(), 2u);
  EXPECT_GE(allocated[0].bytes, 4000u);
  tn_tensor_release(a);
  tn_tensor_release(tensor({1000}, std::vector<float>(1000, 3.f)));
  EXPECT_EQ(of(TN_EVENT_ALLOC).size(), 2u) << "the pool had it";
  tn_tensor_release(b);
}

TEST_F(Trace, tells_a_call_that_fails_with_no_value) {
  tn_tensor *a = tensor({2}, {1, 2}), *b = tensor({3}, {1, 2, 3}), *in[2] = {a, b}, *out = nullptr;
  listen(kAll);
  const tn_call_args args{op("add"), 0, 0, 0, 2, 1, in, &out, nullptr};
  EXPECT_EQ(tn_call(queue, &args, nullptr), TN_E_SHAPE);
  ASSERT_EQ(of(TN_EVENT_CALL).size(), 1u);
  EXPECT_EQ(of(TN_EVENT_CALL)[0].value, 0u);
  EXPECT_TRUE(of(TN_EVENT_KERNEL).empty());
  tn_tensor_release(a);
  tn_tensor_release(b);
}

TEST_F(Trace, sends_only_what_the_mask_names) {
  tn_tensor* x = tensor({2}, {1, 2});
  listen(1 << TN_EVENT_COPY);
  tn_tensor_release(call(op("add"), 0, {x, x})[0]);
  EXPECT_TRUE(heard.empty());
  TN_ASSERT_OK(tn_set_hooks(runtime.get(), nullptr, diag));
  read(x);
  EXPECT_TRUE(heard.empty());
  tn_tensor_release(x);
}

TEST_F(Trace, never_calls_hooks_that_were_replaced) {
  tn_tensor* x = tensor({2}, {1, 2});
  const uint32_t add = op("add");
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    tn_queue* own = nullptr;
    EXPECT_EQ(tn_queue_get(runtime.get(), cpu, &own, nullptr), TN_OK);
    while (!stop) {
      tn_tensor *in[2] = {x, x}, *out = nullptr;
      const tn_call_args args{add, 0, 0, 0, 2, 1, in, &out, nullptr};
      EXPECT_EQ(tn_call(own, &args, nullptr), TN_OK);
      tn_tensor_release(out);
    }
  });
  struct Ears { std::atomic<bool> open{true}; std::atomic<int> heard{0}, too_late{0}; };
  std::vector<std::unique_ptr<Ears>> all;
  for (int n = 0; n < 200; ++n) {
    all.push_back(std::make_unique<Ears>());
    tn_hooks hooks{};
    hooks.size = sizeof hooks;
    hooks.trace_mask = 1 << TN_EVENT_CALL;
    hooks.ctx = all.back().get();
    hooks.event = [](void* ctx, const tn_event*) {
      auto* ears = static_cast<Ears*>(ctx);
      ears->heard++;
      if (!ears->open) ears->too_late++;
    };
    ASSERT_EQ(tn_set_hooks(runtime.get(), &hooks, nullptr), TN_OK);
    if (n) all[all.size() - 2]->open = false;  // the ones before have been taken away
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (all.back()->heard == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  }
  TN_ASSERT_OK(tn_set_hooks(runtime.get(), nullptr, diag));
  all.back()->open = false;
  stop = true;
  worker.join();
  for (const auto& ears : all) {
    EXPECT_GT(ears->heard, 0);
    EXPECT_EQ(ears->too_late, 0);
  }
  tn_tensor_release(x);
}

TEST_F(Trace, lets_a_hook_call_the_runtime) {
  tn_tensor* x = tensor({2}, {1, 2});
  struct Ctx { tn_queue* q; tn_tensor* x; int depth = 0; int events = 0; } ctx{queue, x};
  tn_hooks hooks{};
  hooks.size = sizeof hooks;
  hooks.trace_mask = kAll;
  hooks.ctx = &ctx;
  hooks.event = [](void* p, const tn_event*) {
    auto* c = static_cast<Ctx*>(p);
    ++c->events;
    float values[2];
    if (c->depth++ == 0) {
      EXPECT_EQ(tn_tensor_read(c->q, c->x, values, sizeof values, nullptr), TN_OK);
    }
    --c->depth;
  };
  TN_ASSERT_OK(tn_set_hooks(runtime.get(), &hooks, diag));
  tn_tensor_release(call(op("add"), 0, {x, x})[0]);
  EXPECT_GT(ctx.events, 2);
  TN_ASSERT_OK(tn_set_hooks(runtime.get(), nullptr, diag));
  tn_tensor_release(x);
}

}  // namespace
}  // namespace tenon::test
