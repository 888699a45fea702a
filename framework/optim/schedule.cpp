// Learning-rate schedules.
#include <tenon/optim/optim.hpp>

#include "framework/core/state.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tenon::optim {
namespace {

void check_steps(int64_t steps, const char* what) {
  if (steps > 0) return;
  detail::raise(TN_E_ARG, error::id(error::kTrain, 14), Where{"", 0}, what, "a schedule over no steps",
                detail::format("%lld steps", static_cast<long long>(steps)), "give a number of steps above 0");
}

struct Constant final : Schedule {
  double lr(int64_t, double base) const override { return base; }
};
struct StepDecay final : Schedule {
  StepDecay(int64_t e, double g) : every(e), gamma(g) {}
  double lr(int64_t step, double base) const override { return base * std::pow(gamma, static_cast<double>(step / every)); }
  int64_t every;
  double gamma;
};
struct Cosine final : Schedule {
  Cosine(int64_t p, double l) : period(p), lowest(l) {}
  double lr(int64_t step, double base) const override {
    return lowest + (base - lowest) * (1 + std::cos(std::numbers::pi * static_cast<double>(step) / static_cast<double>(period))) / 2;
  }
  int64_t period;
  double lowest;
};

// Half a cosine wave from `from` to `to`.
double anneal(double from, double to, double share) { return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * share)); }

struct OneCycle final : Schedule {
  OneCycle(int64_t t, OneCycleOptions options) : total(t), o(options) {}
  double lr(int64_t step, double base) const override {
    const double start = base / o.start_factor;
    return at(step, start, base, start / o.end_factor);
  }
  std::optional<double> momentum(int64_t step) const override {
    if (!o.cycle_momentum) return std::nullopt;
    return at(step, o.high_momentum, o.low_momentum, o.high_momentum);
  }
  double at(int64_t step, double first, double peak, double last) const {
    const double s = static_cast<double>(std::min(step, total - 1)), top = o.warm_share * static_cast<double>(total) - 1;
    const double end = static_cast<double>(total - 1);
    if (s <= top) return anneal(first, peak, top > 0 ? s / top : 1);
    return anneal(peak, last, (s - top) / (end - top));
  }
  int64_t total;
  OneCycleOptions o;
};

struct Warmup final : Schedule {
  Warmup(int64_t n, std::unique_ptr<Schedule> s, double f) : steps(n), then(std::move(s)), start(f) {}
  double lr(int64_t step, double base) const override {
    if (step >= steps) return then->lr(step - steps, base);
    return then->lr(0, base) * (start + (1 - start) * static_cast<double>(step) / static_cast<double>(steps));
  }
  std::optional<double> momentum(int64_t step) const override { return then->momentum(std::max<int64_t>(step - steps, 0)); }
  int64_t steps;
  std::unique_ptr<Schedule> then;
  double start;
};

}  // namespace

std::unique_ptr<Schedule> constant() { return std::make_unique<Constant>(); }
std::unique_ptr<Schedule> step_decay(int64_t every, double gamma) {
  check_steps(every, "step_decay");
  return std::make_unique<StepDecay>(every, gamma);
}
std::unique_ptr<Schedule> cosine(int64_t period, double lowest_lr) {
  check_steps(period, "cosine");
  return std::make_unique<Cosine>(period, lowest_lr);
}
std::unique_ptr<Schedule> one_cycle(int64_t total_steps, OneCycleOptions o) {
  check_steps(total_steps, "one_cycle");
  return std::make_unique<OneCycle>(total_steps, o);
}
std::unique_ptr<Schedule> warmup(int64_t steps, std::unique_ptr<Schedule> then, double start_factor) {
  check_steps(steps, "warmup");
  return std::make_unique<Warmup>(steps, std::move(then), start_factor);
}

Scheduler::Scheduler(Optimizer& optimizer, std::unique_ptr<Schedule> schedule) : optimizer_(optimizer), schedule_(std::move(schedule)) { seek(0); }
void Scheduler::seek(int64_t position) {
  position_ = position;
  for (Group& g : optimizer_.groups()) {
    g.lr = schedule_->lr(position, g.base_lr);
    if (const auto m = schedule_->momentum(position)) g.momentum = *m;
  }
}

}  // namespace tenon::optim
