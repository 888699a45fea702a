// What this machine can do at all: multiply-adds in registers, and copying, by programs without Tenon. From both, the
// least time of a training step: every op at max(FLOPs / rate, bytes / copy bandwidth).
#include <algorithm>

#include "tools/tenon/bench/bench.h"

namespace tenon::cli {
namespace {

struct Op { double flops, bytes; };

// A product with its two gradients (one, where the input needs none), and the update of its weights by Adam: parameter,
// gradient and two moments read, three written.
void product(std::vector<Op>* ops, double rows, double in, double out, bool first) {
  const double flops = 2 * rows * in * out, weights = 4 * in * out;
  for (int k = 0; k < (first ? 2 : 3); ++k) ops->push_back({flops, 4 * rows * (in + out) + weights});
  ops->push_back({0, 7 * weights});
}
// Forward one read and one write, backward two reads and one write.
void elementwise(std::vector<Op>* ops, double elements) { ops->insert(ops->end(), {{0, 8 * elements}, {0, 12 * elements}}); }
// 2 x 2: a quarter is written; backward reads input and a quarter twice, writes all.
void pooling(std::vector<Op>* ops, double elements) { ops->insert(ops->end(), {{0, 5 * elements}, {0, 10 * elements}}); }

std::vector<Op> mlp(double batch) {
  std::vector<Op> ops;
  product(&ops, batch, 784, 512, true);
  elementwise(&ops, batch * 512);
  product(&ops, batch, 512, 10, false);
  elementwise(&ops, batch * 10);
  return ops;
}

std::vector<Op> cnn(double batch) {
  std::vector<Op> ops;
  auto convolution = [&](double channels, double out, double places, bool first) {
    const double flops = 2 * batch * places * channels * out * 9, weights = 4 * channels * out * 9;
    for (int k = 0; k < (first ? 2 : 3); ++k) ops.push_back({flops, 4 * batch * places * (channels + out) + weights});
    ops.push_back({0, 7 * weights});
    elementwise(&ops, batch * places * out);
    pooling(&ops, batch * places * out);
  };
  convolution(1, 32, 784, true);
  convolution(32, 64, 196, false);
  product(&ops, batch, 3136, 128, false);
  elementwise(&ops, batch * 128);
  product(&ops, batch, 128, 10, false);
  elementwise(&ops, batch * 10);
  return ops;
}

// rates in FLOPs and bytes a nanosecond, pair by pair.
std::vector<double> images_per_second(const std::vector<Op>& ops, double batch, const std::vector<double>& flops, const std::vector<double>& bytes) {
  std::vector<double> figures;
  for (size_t k = 0; k < std::min(flops.size(), bytes.size()); ++k) {
    double ns = 0;
    for (const Op& op : ops) ns += std::max(op.flops / flops[k], op.bytes / bytes[k]);
    figures.push_back(batch * 1e9 / ns);
  }
  return figures;
}

}  // namespace

void bench_floor(Bench& bench) {
  for (int threads : {1, 2}) {
    const std::string t = ".t" + std::to_string(threads);
    const auto flops = bench.run({.name = "floor.fma_f32" + t, .unit = "GFLOP/s", .work = 1, .threads = threads, .rivals = {"handfused"}})["handfused"];
    const auto bytes = bench.run({.name = "floor.copy" + t, .unit = "GB/s", .work = 2.0 * 4 * (32 << 20), .threads = threads, .rivals = {"memcpy"}})["memcpy"];
    if (flops.empty() || bytes.empty()) continue;
    bench.derived({.name = "floor.train.mlp" + t, .unit = "img/s", .threads = threads}, "handfused", images_per_second(mlp(128), 128, flops, bytes));
    bench.derived({.name = "floor.train.cnn" + t, .unit = "img/s", .threads = threads}, "handfused", images_per_second(cnn(64), 64, flops, bytes));
  }
}

}  // namespace tenon::cli
