// One training run in a test: everything it is made of, and its losses.
#pragma once
#include <tenon/io/tensors.hpp>
#include <tenon/tenon.hpp>
#include <tenon/train/train.hpp>

#include "tests/framework/on_device.h"
#include "tests/train/images.h"

namespace tenon::test {

class Losses final : public train::Callback {
 public:
  void on_losses(std::span<const train::StepLoss> losses) override {
    for (const train::StepLoss& s : losses) steps.push_back(s.step), values.push_back(s.loss);
  }
  std::vector<int64_t> steps;
  std::vector<double> values;
};

struct RunOptions {
  std::vector<std::string> layers = {"flatten", "linear 64", "relu", "linear 10"};
  Device device = {};
  uint32_t batch = 50;
  double lr = 1e-2;
  bool channels_last = false;
  train::TrainerOptions trainer;
};

struct TrainingRun {
  explicit TrainingRun(std::shared_ptr<const data::MemoryDataset> images, RunOptions o = {}) {
    const Device where = o.device ? o.device : default_device();
    manual_seed(7);
    net = train::build_model(o.layers, images->shape());
    net.move_to(where);
    data::LoaderOptions lo;
    lo.batch = o.batch;
    lo.seed = 3;
    lo.normalise = data::measure_normalisation(*images);
    normalise = lo.normalise;
    loader = std::make_unique<data::DataLoader>(images, lo);
    source = std::make_unique<train::LoaderSource>(*loader, where, train::LoaderSourceOptions{.batch = o.batch, .channels_last = o.channels_last});
    optimizer = std::make_unique<optim::Adam>(net.parameters(), optim::AdamOptions{.lr = o.lr});
    const int64_t total = o.trainer.max_steps > 0 ? o.trainer.max_steps : o.trainer.epochs * source->batches_per_epoch();
    schedule = std::make_unique<optim::Scheduler>(*optimizer, optim::one_cycle(total));
    trainer = std::make_unique<train::Trainer>(train::Parts{net, *source, *optimizer, schedule.get()}, o.trainer);
    trainer->add(losses);
  }
  nn::Sequential net;
  data::Normalise normalise;
  std::unique_ptr<data::DataLoader> loader;
  std::unique_ptr<train::LoaderSource> source;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::Scheduler> schedule;
  std::unique_ptr<train::Trainer> trainer;
  Losses losses;
};

// The default runtime for a scope.
struct RuntimeScope {
  explicit RuntimeScope(RuntimeOptions o = {}) : before(default_runtime()), now(o) { change(now); }
  ~RuntimeScope() { change(before); }
  static void change(const Runtime& to) {
    set_default_runtime(to);
    use_test_device();
  }
  Runtime before, now;
};
inline RuntimeOptions reference_only() {
  RuntimeOptions o;
  if (other_device() != nullptr) o.allow = {"dev.tenon.sim"};  // and the linked one, as always
  else o.flags = TN_RT_NO_SEARCH;
  return o;
}

}  // namespace tenon::test
