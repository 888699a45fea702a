// tenon_rival_native: the rivals that need no library. RIVAL memcpy: a copy of the same bytes. RIVAL handfused: loops
// written by hand and built for this processor.
#include <cstring>
#include <thread>
#include <vector>

#include "tools/bench/handfused.h"
#include "tools/bench/rival.h"

namespace tenon::bench {
namespace {

constexpr size_t kChain = size_t{8} << 20, kRows = size_t{4096} * 4096;

std::unique_ptr<Sampler> copy_floats(size_t n, int threads) {
  auto from = large_floats(n), to = large_floats(n);
  return std::make_unique<Sampler>([=](int64_t calls) {
    auto work = [&](size_t begin, size_t end) {
      for (int64_t c = 0; c < calls; ++c) {
        std::memcpy(to.get() + begin, from.get() + begin, (end - begin) * sizeof(float));
        __asm__ volatile("" ::: "memory");
      }
    };
    std::vector<std::thread> helpers;
    const size_t share = n / static_cast<size_t>(threads);
    for (int t = 1; t < threads; ++t) helpers.emplace_back(work, share * static_cast<size_t>(t), share * static_cast<size_t>(t + 1));
    work(0, share);
    for (std::thread& h : helpers) h.join();
  });
}

std::unique_ptr<Sampler> fma(int threads) {
  constexpr int64_t kRounds = 2000000;  // some milliseconds, beside which making a thread is nothing
  return std::make_unique<Sampler>([threads](int64_t calls) {
    auto work = [calls] { spin_fma(kRounds * calls); };
    std::vector<std::thread> helpers;
    for (int t = 1; t < threads; ++t) helpers.emplace_back(work);
    work();
    for (std::thread& h : helpers) h.join();
  }, threads * 2.0 * 16 * 12 * kRounds);
}

std::unique_ptr<Sampler> make(const std::string& rival, const std::string& name) {
  if (name.rfind("floor.", 0) == 0) {
    const int threads = std::max(1, std::atoi(part(name, 2).c_str() + 1));
    if (part(name, 1) == "copy" && rival == "memcpy") return copy_floats(size_t{32} << 20, threads);
    if (part(name, 1) == "fma_f32" && rival == "handfused") return fma(threads);
  }
  if (rival == "memcpy" && name == "pointwise.chain10") return copy_floats(kChain, 1);
  if (rival == "memcpy" && (name == "softmax.4096" || name == "layernorm.4096")) return copy_floats(kRows, 1);
  if (rival == "handfused" && name == "pointwise.chain10") {
    auto x = large_floats(kChain), y = large_floats(kChain);
    return std::make_unique<Sampler>([=](int64_t calls) { for (; calls > 0; --calls) chain10(x.get(), y.get(), kChain); });
  }
  throw std::runtime_error(rival + " has no case " + name);
}

}  // namespace
}  // namespace tenon::bench

int main(int argc, char** argv) {
  const std::string rival = argc > 1 ? argv[1] : "memcpy";
  return tenon::bench::serve(rival + ", gcc " __VERSION__ ", -O3 -march=native", [&](const std::string& name) { return tenon::bench::make(rival, name); });
}
