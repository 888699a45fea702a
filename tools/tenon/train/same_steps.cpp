#include "tools/tenon/train/same_steps.h"

#include <algorithm>
#include <cmath>

namespace tenon::cli {
namespace {

class Losses final : public train::Callback {
 public:
  void on_losses(std::span<const train::StepLoss> losses) override {
    for (const train::StepLoss& s : losses) values.push_back(s.loss);
  }
  std::vector<double> values;
};

std::vector<double> run_steps(const ModelCard& card, std::shared_ptr<const data::Dataset> dataset, const nn::StateDict& start, Device device, int64_t steps, uint32_t batch, double lr) {
  nn::Sequential model = train::build_model(card.layers, card.input);
  model.move_to(device);
  model.load_state_dict(start);
  data::LoaderOptions lo;
  lo.batch = batch;
  lo.seed = 2;
  lo.normalise = card.normalise;
  data::DataLoader loader(std::move(dataset), lo);
  train::LoaderSource source(loader, device, {.batch = batch});
  optim::Adam optimizer(model.parameters(), {.lr = lr});
  optim::Scheduler schedule(optimizer, optim::one_cycle(steps));
  train::Trainer trainer({model, source, optimizer, &schedule}, {.epochs = 1, .max_steps = steps});
  Losses losses;
  trainer.add(losses);
  trainer.fit();
  return losses.values;
}

}  // namespace

SameSteps compare_devices(const ModelCard& card, std::shared_ptr<const data::Dataset> dataset, Device a, Device b, int64_t steps, uint32_t batch, double lr) {
  const nn::Sequential fresh = train::build_model(card.layers, card.input);
  const nn::StateDict start = fresh.state_dict();
  SameSteps result;
  result.a = run_steps(card, dataset, start, a, steps, batch, lr);
  result.b = run_steps(card, dataset, start, b, steps, batch, lr);
  for (size_t i = 0; i < std::min(result.a.size(), result.b.size()); ++i) {
    const double difference = std::abs(result.a[i] - result.b[i]) / std::max({std::abs(result.a[i]), std::abs(result.b[i]), 1e-30});
    result.largest_difference = std::max(result.largest_difference, difference);
  }
  return result;
}

}  // namespace tenon::cli
