// Times and rates of a run; internal to framework/train.
#pragma once
#include <tenon/train/trainer.hpp>

#include <chrono>

namespace tenon::train {

double process_cpu_seconds();  // of all threads

struct Trainer::Clock {
  using Time = std::chrono::steady_clock::time_point;
  static Time now() { return std::chrono::steady_clock::now(); }
  static double between(Time a, Time b) { return std::chrono::duration<double>(b - a).count(); }

  void start() {
    begin = last_read = last_measure = last_lap = now();
    cpu_at_measure = process_cpu_seconds();
    images_at_measure = 0;
    rate = 0, busy = -1;
  }
  double elapsed() const { return between(begin, now()); }
  double since_read() const { return between(last_read, now()); }
  void read() { last_read = now(); }
  double lap() {
    const Time t = now();
    return between(std::exchange(last_lap, t), t);
  }
  // Rates since the last measurement; a short one keeps the old figures, which would jump otherwise.
  void measure(int64_t images) {
    const Time t = now();
    const double wall = between(last_measure, t);
    if (wall < 0.25) return;
    const double cpu = process_cpu_seconds();
    rate = static_cast<double>(images - images_at_measure) / wall;
    busy = (cpu - cpu_at_measure) / wall;
    last_measure = t;
    cpu_at_measure = cpu;
    images_at_measure = images;
  }
  double images_per_s() const { return rate; }
  double busy_share(uint32_t threads) const { return busy < 0 || threads == 0 ? -1 : std::min(busy / threads, 1.0); }

  Time begin, last_read, last_measure, last_lap;
  double cpu_at_measure = 0, rate = 0, busy = -1;
  int64_t images_at_measure = 0;
};

}  // namespace tenon::train
