// Square products through the public C++ interface: plain row-major operands, a fresh result. Cases that end in .packed have
// the right operand stored once, outside of the timing, on both sides.
#include <tenon/tenon.hpp>

#include "tools/tenon/bench/bench.h"

namespace tenon::cli {
namespace {

Tensor operand(const std::string& dtype, bool left, int64_t n) {
  if (dtype != "u8s8") return rand({n, n}).to(dtype == "bf16" ? bf16 : f32);
  return mul(rand({n, n}), 100.0).to(left ? u8 : i8);
}

bench::Sampler product(const std::string& dtype, int64_t n, bool packed) {
  const Tensor a = operand(dtype, true, n), plain = operand(dtype, false, n), b = packed ? prepack(plain, n) : plain;
  return bench::Sampler([=](int64_t calls) {
    const NoGrad off;
    Tensor y = matmul(a, b);
    for (; calls > 1; --calls) {
      y = {};  // its memory is reused at once, as the rival reuses its destination
      y = matmul(a, b);
    }
    y.device().synchronize();
  });
}

void one(Bench& bench, const std::string& dtype, int64_t n, int threads, bool packed = false) {
  const bool small = n < 64;  // of these the time is of interest, not the rate
  const std::string name = "gemm." + dtype + "." + std::to_string(n) + ".t" + std::to_string(threads) + (packed ? ".packed" : "");
  if (!bench.wants(name)) return;
  std::vector<std::string> rivals{"onednn"};
  if (dtype != "f32") rivals.push_back("tiles");  // no rival that could be passed: the products alone, without any memory
  bench.run({.name = name, .unit = small ? "ns" : "GFLOP/s", .work = 2.0 * static_cast<double>(n * n * n), .threads = threads,
             .tenon = [=] { return product(dtype, n, packed); }, .rivals = rivals});
}

}  // namespace

void bench_gemm(Bench& bench) {
  for (int threads : {1, 2}) {
    bench.use_threads(threads);
    for (int64_t n : {8, 32})
      if (threads == 1) one(bench, "f32", n, threads);
    for (const char* dtype : {"f32", "bf16", "u8s8"})
      for (int64_t n : {512, 1024, 2048})
        for (bool packed : {false, true}) one(bench, dtype, n, threads, packed);
  }
}

}  // namespace tenon::cli
