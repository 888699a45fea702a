// Steps of training on batches that lie in memory: forward, loss, backward, update. Figures are images a second.
#include <tenon/tenon.hpp>

#include <memory>

#include "tools/tenon/bench/bench.h"

namespace tenon::cli {
namespace {

using bench::Sampler;

nn::Sequential mlp() { return nn::sequential(nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 10)); }

// Two convolutions, two poolings, two products.
nn::Sequential cnn() {
  return nn::sequential(nn::Conv2d(1, 32, 3, 1, 1), nn::ReLU(), nn::MaxPool2d(2), nn::Conv2d(32, 64, 3, 1, 1), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(),
                        nn::Linear(3136, 128), nn::ReLU(), nn::Linear(128, 10));
}

Sampler steps(nn::Sequential (*net)(), const Shape& images, int64_t batch) {
  struct Held {
    Held(nn::Sequential net, Tensor images, Tensor classes)
        : model(std::move(net)), adam(model.parameters(), {.lr = 1e-3}), x(images.rank() == 4 ? images.channels_last() : images), target(std::move(classes)) {}
    nn::Sequential model;
    optim::Adam adam;
    Tensor x, target;
  };
  std::vector<int64_t> labels;
  for (int64_t k = 0; k < batch; ++k) labels.push_back(k * 7 % 10);
  auto held = std::make_shared<Held>(net(), rand(images), from_vector(labels, {batch}));
  return Sampler([held](int64_t calls) {
    Tensor loss;
    for (; calls > 0; --calls) {
      loss = nn::cross_entropy(held->model.forward(held->x), held->target);
      held->adam.zero_grad();
      loss.backward();
      held->adam.step();
    }
    loss.device().synchronize();
  });
}

// The better of one and two threads on this machine now, as the rival finds out for itself too.
int best_threads(Bench& bench, const std::function<Sampler()>& make) {
  double ns[3] = {};
  for (int threads : {1, 2}) {
    bench.use_threads(threads);
    Sampler sampler = make();
    sampler.sample();
    ns[threads] = sampler.sample();
    for (int k = 0; k < 4; ++k) ns[threads] = std::min(ns[threads], sampler.sample());
  }
  return ns[2] < ns[1] ? 2 : 1;
}

void one(Bench& bench, const std::string& name, int64_t batch, const std::function<Sampler()>& make) {
  if (!bench.wants(name)) return;
  const int threads = best_threads(bench, make);
  bench.use_threads(threads);
  bench.run({.name = name, .unit = "img/s", .work = static_cast<double>(batch), .threads = threads, .tenon = make, .rivals = {"torch-train"}});
}

}  // namespace

void bench_train(Bench& bench) {
  one(bench, "train.mlp", 128, [] { return steps(mlp, {128, 784}, 128); });
  one(bench, "train.cnn", 64, [] { return steps(cnn, {64, 1, 28, 28}, 64); });
}

}  // namespace tenon::cli
