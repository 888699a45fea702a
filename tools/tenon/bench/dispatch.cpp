// Cost of one small op through the public C++ interface. Outputs are fresh; figures are ns an op.
#include <tenon/tenon.hpp>

#include <atomic>
#include <memory>
#include <thread>

#include "tools/tenon/bench/bench.h"
#include "tools/tenon/common/context.h"

namespace tenon::cli {
namespace {

using bench::Sampler;

Sampler add16(bool recording) {
  Tensor a = rand({16}), b = rand({16});
  if (recording) a.set_requires_grad(true);
  return Sampler([=](int64_t calls) {
    const bool before = set_grad_enabled(recording);
    Tensor y;
    for (; calls > 0; --calls) y = add(a, b);
    set_grad_enabled(before);
  });
}

// 64 shapes x 8 ops, one after another: every call finds another plan than the one before.
Sampler rotate() {
  using Op = Tensor (*)(const Tensor&, const Tensor&, Where);
  static constexpr Op kOps[8] = {add, sub, mul, div, maximum, minimum, less, equal};
  auto operands = std::make_shared<std::vector<Tensor>>();
  for (int64_t k = 0; k < 64; ++k) operands->push_back(k % 2 ? full({k / 2 + 1}, 0.5) : full({2, k / 2 + 1}, 0.5));
  return Sampler([=](int64_t calls) {
    const NoGrad off;
    Tensor y;
    for (; calls > 0; --calls)
      for (const Tensor& x : *operands)
        for (Op op : kOps) y = op(x, x, here());
  }, 64 * 8);
}

// A prepared plan, launched into an output that is there.
Sampler launch() {
  struct Held {
    Tensor a = rand({16}), b = rand({16}), y = empty({16});
    tn_plan* plan = nullptr;
    tn_queue* queue = nullptr;
    ~Held() { tn_plan_release(plan); }
  };
  auto held = std::make_shared<Held>();
  const Device device = default_device();
  tn_diag diag{};
  diag.size = sizeof diag;
  uint32_t op = 0;
  const uint32_t types[] = {held->a.type_id(), held->b.type_id()};
  if (tn_status s = tn_op_find(device.runtime(), "add", 0, &op, &diag)) throw_diag(diag, s);
  const tn_spec spec{op, 0, device.id(), 0, 2, 0, types};
  if (tn_status s = tn_plan_prepare(device.runtime(), &spec, &held->plan, &diag)) throw_diag(diag, s);
  if (tn_status s = tn_queue_get(device.runtime(), device.id(), &held->queue, &diag)) throw_diag(diag, s);
  return Sampler([held](int64_t calls) {
    tn_tensor* in[] = {held->a.handle(), held->b.handle()};
    tn_tensor* out[] = {held->y.handle()};
    const tn_call_args args{0, 0, 0, 0, 2, 1, in, out, nullptr};
    for (; calls > 0; --calls)
      if (tn_status s = tn_plan_launch(held->queue, held->plan, &args, nullptr)) throw_diag(tn_diag{}, s);
  });
}

// Forward and backward of a chain of 50 adds and multiplications.
Sampler chain50() {
  Tensor x = rand({16}), w = rand({16});
  x.set_requires_grad(true);
  const Tensor seed = ones({16});
  return Sampler([=](int64_t calls) {
    for (; calls > 0; --calls) {
      Tensor y = x;
      for (int k = 0; k < 25; ++k) y = mul(add(y, w), w);
      const Tensor outputs[] = {y}, inputs[] = {x}, seeds[] = {seed};
      grad(outputs, inputs, seeds);
    }
  }, 50);
}

// `threads` threads, each on its own queue; ns of the whole by all adds of all threads. So many adds a call that making
// the threads does not count.
Sampler parallel_adds(int threads) {
  constexpr int64_t kAdds = 100000;
  return Sampler([threads](int64_t calls) {
    std::atomic<int> waiting{threads};
    auto work = [&waiting, calls] {
      const NoGrad off;
      const Tensor a = full({16}, 1), b = full({16}, 2);
      Tensor y = add(a, b);
      waiting.fetch_sub(1);
      while (waiting.load() > 0) {}
      for (int64_t k = 0; k < calls * kAdds; ++k) y = add(a, b);
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work);
    work();
    for (std::thread& t : others) t.join();
  }, static_cast<double>(threads * kAdds));
}

}  // namespace

void bench_dispatch(Bench& bench) {
  bench.use_threads(1);
  bench.run({.name = "dispatch.add16.nograd", .tenon = [] { return add16(false); }, .rivals = {"torch"}});
  bench.run({.name = "dispatch.add16.grad", .tenon = [] { return add16(true); }, .rivals = {"torch"}});
  bench.run({.name = "dispatch.rotate", .tenon = rotate, .rivals = {"torch"}});
  bench.run({.name = "dispatch.launch", .tenon = launch});
  bench.run({.name = "dispatch.chain50.fwdbwd", .tenon = chain50, .rivals = {"torch"}});
  // The second divided into the first is what two threads gain.
  bench.run({.name = "dispatch.threads1", .tenon = [] { return parallel_adds(1); }, .rivals = {"torch"}});
  bench.run({.name = "dispatch.threads2", .threads = 2, .tenon = [] { return parallel_adds(2); }, .rivals = {"torch"}});
}

}  // namespace tenon::cli
