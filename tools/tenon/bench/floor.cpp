// What this machine can do at all: multiply-adds in registers, and copying. By programs without Tenon.
#include "tools/tenon/bench/bench.h"

namespace tenon::cli {

void bench_floor(Bench& bench) {
  for (int threads : {1, 2}) {
    const std::string t = ".t" + std::to_string(threads);
    bench.run({.name = "floor.fma_f32" + t, .unit = "GFLOP/s", .work = 1, .threads = threads, .rivals = {"handfused"}});
    bench.run({.name = "floor.copy" + t, .unit = "GB/s", .work = 2.0 * 4 * (32 << 20), .threads = threads, .rivals = {"memcpy"}});
  }
}

}  // namespace tenon::cli
