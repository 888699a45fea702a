// tools/bench/sampler.h - timing one thing, the same way for Tenon and for its rivals.
//
//   Sampler s([&] { y = add(a, b); });
//   double ns = s.sample();       // of one call
//
// A sample is one untimed call, which brings caches and threads back from what ran between, and as many timed calls as
// take about a millisecond (one, if a call takes longer).
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>

namespace tenon::bench {

inline double now_ns() {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

class Sampler {
 public:
  // run(calls) makes that many calls and returns when they are done. per_call: ops in a call, the samples are divided by.
  Sampler(std::function<void(int64_t calls)> run, double per_call = 1) : run_(std::move(run)), per_call_(per_call) {}

  double sample() {
    if (calls_ == 0) calibrate();
    run_(1);
    return timed(calls_) / static_cast<double>(calls_) / per_call_;
  }

 private:
  double timed(int64_t calls) {
    const double begin = now_ns();
    run_(calls);
    return now_ns() - begin;
  }
  void calibrate() {
    constexpr double kSampleNs = 1e6;
    calls_ = 1;
    run_(1);
    for (double ns = timed(1); ns < kSampleNs / 2 && calls_ < (int64_t{1} << 30); ns = timed(calls_)) calls_ *= 2;
  }

  std::function<void(int64_t)> run_;
  double per_call_;
  int64_t calls_ = 0;
};

}  // namespace tenon::bench
