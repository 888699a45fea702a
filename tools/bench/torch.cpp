// tenon_rival_torch: libtorch through its C++ interface, for the cases of `dispatch`. Eager calls with fresh outputs.
#include <torch/torch.h>
#include <torch/version.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tools/bench/rival.h"

namespace tenon::bench {
namespace {

std::unique_ptr<Sampler> add16(bool recording) {
  torch::Tensor a = torch::rand({16}), b = torch::rand({16});
  if (recording) a.set_requires_grad(true);
  return std::make_unique<Sampler>([=](int64_t calls) {
    const at::AutoGradMode mode(recording);
    torch::Tensor y;
    for (; calls > 0; --calls) y = at::add(a, b);
  });
}

std::unique_ptr<Sampler> rotate() {
  using Op = torch::Tensor (*)(const torch::Tensor&, const torch::Tensor&);
  static const Op kOps[8] = {[](auto& a, auto& b) { return at::add(a, b); }, [](auto& a, auto& b) { return at::sub(a, b); },
                             [](auto& a, auto& b) { return at::mul(a, b); }, [](auto& a, auto& b) { return at::div(a, b); },
                             [](auto& a, auto& b) { return at::maximum(a, b); }, [](auto& a, auto& b) { return at::minimum(a, b); },
                             [](auto& a, auto& b) { return at::less(a, b); }, [](auto& a, auto& b) { return at::eq(a, b); }};
  std::vector<torch::Tensor> operands;
  for (int64_t k = 0; k < 64; ++k) operands.push_back(k % 2 ? torch::full({k / 2 + 1}, 0.5) : torch::full({2, k / 2 + 1}, 0.5));
  return std::make_unique<Sampler>([=](int64_t calls) {
    const torch::NoGradGuard off;
    torch::Tensor y;
    for (; calls > 0; --calls)
      for (const torch::Tensor& x : operands)
        for (Op op : kOps) y = op(x, x);
  }, 64 * 8);
}

std::unique_ptr<Sampler> chain50() {
  torch::Tensor x = torch::rand({16}), w = torch::rand({16});
  x.set_requires_grad(true);
  const torch::Tensor seed = torch::ones({16});
  return std::make_unique<Sampler>([=](int64_t calls) {
    for (; calls > 0; --calls) {
      torch::Tensor y = x;
      for (int k = 0; k < 25; ++k) y = at::mul(at::add(y, w), w);
      torch::autograd::grad({y}, {x}, {seed});
    }
  }, 50);
}

std::unique_ptr<Sampler> parallel_adds(int threads) {
  constexpr int64_t kAdds = 100000;
  return std::make_unique<Sampler>([threads](int64_t calls) {
    std::atomic<int> waiting{threads};
    auto work = [&waiting, calls] {
      const torch::NoGradGuard off;
      const torch::Tensor a = torch::full({16}, 1.f), b = torch::full({16}, 2.f);
      torch::Tensor y = at::add(a, b);
      waiting.fetch_sub(1);
      while (waiting.load() > 0) {}
      for (int64_t k = 0; k < calls * kAdds; ++k) y = at::add(a, b);
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work);
    work();
    for (std::thread& t : others) t.join();
  }, static_cast<double>(threads * kAdds));
}

std::unique_ptr<Sampler> make(const std::string& name) {
  if (name == "dispatch.add16.nograd") return add16(false);
  if (name == "dispatch.add16.grad") return add16(true);
  if (name == "dispatch.rotate") return rotate();
  if (name == "dispatch.chain50.fwdbwd") return chain50();
  if (name == "dispatch.threads1") return parallel_adds(1);
  if (name == "dispatch.threads2") return parallel_adds(2);
  throw std::runtime_error("torch has no case " + name);
}

}  // namespace
}  // namespace tenon::bench

int main() {
  torch::set_num_threads(1);  // 16 elements are nobody's reason to wake a second thread
  return tenon::bench::serve("libtorch " TORCH_VERSION, tenon::bench::make);
}
