// tools/tenon/bench/bench.h - cases of `tenon bench`, and how they are compared.
//
// A case is measured by Tenon and by its rivals in turn, sample by sample, so that whatever the machine does meanwhile
// hits all of them. One row a contender: {"case","impl","n","min","median","p90","unit","env"}; the figures are those of
// the n samples in the row's unit (of rates, min is the slowest).
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tools/bench/sampler.h"
#include "tools/tenon/bench/rival_process.h"
#include "tools/tenon/common/context.h"

namespace tenon::cli {

struct Case {
  std::string name, unit = "ns";  // ns, ms, GFLOP/s, GB/s, img/s
  double work = 0;                // of one call: FLOPs, bytes or images, for the three rates
  int threads = 1;                // other programs' threads get time to fall asleep when there are several
  std::function<bench::Sampler()> tenon;  // made when the case's turn comes; empty: only rivals have it
  std::vector<std::string> rivals;        // in the order of the rows
};

struct BenchOptions {
  std::string only;   // part of a case's name
  int64_t pairs = 31;
  std::set<std::string> need;  // rivals without which nothing is measured
  bool alone = false;          // no rivals
  std::string torch_python = "python3";  // interpreter that has torch, for the rivals of training
};

class Bench {
 public:
  Bench(Context& context, BenchOptions options) : context_(context), options_(std::move(options)) {}
  bool wants(const std::string& name) const { return name.find(options_.only) != std::string::npos; }
  // Measures and prints. Nothing happens when --case leaves it out. Returns the samples in the case's unit, by impl, in the
  // order in which they were taken.
  using Samples = std::map<std::string, std::vector<double>>;
  Samples run(const Case& c);
  // A row that is computed from samples of others.
  void derived(const Case& c, const std::string& impl, const std::vector<double>& samples);
  Context& context() { return context_; }
  // A runtime with so many threads becomes the default one. Tensors of the runtime before must be gone.
  void use_threads(int threads);
  size_t cases() const { return cases_; }

 private:
  RivalProcess* rival(const std::string& name);  // null, with a warning once, when it is absent
  void row(const Case& c, const std::string& impl, std::vector<double> samples, const std::string& note, double times);  // times: as fast as the rival; 0: none
  Context& context_;
  BenchOptions options_;
  std::map<std::string, std::unique_ptr<RivalProcess>> rivals_;
  size_t cases_ = 0;
  bool headed_ = false;
};

void bench_dispatch(Bench&);
void bench_gemm(Bench&);
void bench_elementwise(Bench&);
void bench_floor(Bench&);
void bench_train(Bench&);

}  // namespace tenon::cli
