// tenon_rival_native: the rivals that need no library. RIVAL memcpy: a copy of the same bytes. RIVAL handfused: loops
// written by hand and built for this processor. RIVAL tiles: the products of a GEMM on AMX tiles, operands in L1, a bound that no
// kernel can pass.
#include <cstring>
#include <thread>
#include <vector>

#include "tools/bench/handfused.h"
#include "tools/bench/rival.h"
#include "tools/bench/tiles.h"

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

// The same work on each of some threads, the calling one among them.
template <class Work>
void on_threads(int threads, const Work& work) {
  std::vector<std::thread> helpers;
  for (int t = 1; t < threads; ++t) helpers.emplace_back(work);
  work();
  for (std::thread& h : helpers) h.join();
}

std::unique_ptr<Sampler> fma(int threads) {
  constexpr int64_t kRounds = 2000000;  // some milliseconds, beside which making a thread is nothing
  return std::make_unique<Sampler>([threads](int64_t calls) { on_threads(threads, [calls] { spin_fma(kRounds * calls); }); }, threads * 2.0 * 16 * 12 * kRounds);
}

// n x n by n x n: 16 x 16 results a piece, 64 bytes of the depth.
std::unique_ptr<Sampler> tiles(const std::string& dtype, int64_t n, int threads) {
  if (!have_tiles()) throw std::runtime_error("no AMX tiles for this process");
  const bool bf16 = dtype == "bf16";
  const int64_t pieces = n * n / 256 * n * (bf16 ? 2 : 1) / 64 / threads;
  return std::make_unique<Sampler>([=](int64_t calls) { on_threads(threads, [=] { spin_tiles(pieces * calls, bf16); }); });
}

std::unique_ptr<Sampler> make(const std::string& rival, const std::string& name) {
  if (name.rfind("floor.", 0) == 0) {
    const int threads = std::max(1, std::atoi(part(name, 2).c_str() + 1));
    if (part(name, 1) == "copy" && rival == "memcpy") return copy_floats(size_t{32} << 20, threads);
    if (part(name, 1) == "fma_f32" && rival == "handfused") return fma(threads);
  }
  if (rival == "tiles" && part(name, 0) == "gemm" && part(name, 3).size() > 1 && (part(name, 1) == "bf16" || part(name, 1) == "u8s8"))
    return tiles(part(name, 1), std::stol(part(name, 2)), std::stoi(part(name, 3).substr(1)));
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
