// TN-TRAIN: modules, optimizers, training.
#include <tenon/tenon.hpp>
#include <tenon/train/train.hpp>

#include <cmath>
#include <filesystem>
#include <regex>

#include "tests/errors/golden.h"
#include "tests/errors/tables.h"

namespace tenon::errors {
namespace {

namespace fs = std::filesystem;

struct Twice final : nn::Layer<Twice> {
  Twice() : Layer("Net") {
    child("fc", nn::Linear(2, 2));
    child("fc", nn::Linear(2, 2));
  }
  Tensor forward(const Tensor& x) override { return x; }
};

Said build(const std::vector<std::string>& layers) {
  return thrown([&] { train::build_model(layers, {1, 4, 4}); });
}

// A few made-up images, enough to train on.
struct Run {
  explicit Run(uint32_t batch = 4, double lr = 1e-2, int64_t hidden = 8, train::TrainerOptions options = {})
      : net(train::build_model({"flatten", "linear " + std::to_string(hidden), "relu", "linear 10"}, {1, 4, 4})),
        loader(images(), loading(batch)), source(loader, device("cpu:0"), {.batch = batch}), optimizer(net.parameters(), {.lr = lr}),
        trainer(train::Parts{net, source, optimizer}, std::move(options)) {}
  static std::shared_ptr<const data::Dataset> images() {
    std::vector<uint8_t> pixels(40 * 16);
    std::vector<int64_t> labels(40);
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 37);
    for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i % 10);
    return *data::MemoryDataset::create({1, 4, 4}, pixels, labels, 10);
  }
  static data::LoaderOptions loading(uint32_t batch) {
    data::LoaderOptions o;
    o.batch = batch;
    o.prefetch = 0;
    return o;
  }
  nn::Sequential net;
  data::DataLoader loader;
  train::LoaderSource source;
  optim::SGD optimizer;
  train::Trainer trainer;
};

Said resume_another_run() {
  char name[] = "/tmp/tenon-errors-XXXXXX";
  const std::string folder = fs::canonical(mkdtemp(name)).string();
  call_it_dir(folder);
  train::TrainerOptions options;
  options.checkpoint.dir = folder;
  Run first(4, 1e-2, 8, options);
  const std::string at = first.trainer.fit().checkpoint;
  Run second(4, 1e-2, 7);
  const Said said = thrown([&] { second.trainer.resume(at); });
  fs::remove_all(folder);
  return said;
}

Said run_out_of_memory() {
  const Runtime before = default_runtime();
  RuntimeOptions limited;
  limited.flags = TN_RT_NO_SEARCH;
  limited.memory_limit_bytes = 130 << 10;
  set_default_runtime(Runtime(limited));
  Said said;
  {
    Run run(40, 1e-2, 256);
    said = thrown([&] { run.trainer.fit(); });
  }
  set_default_runtime(before);
  // How much a step takes is not what this is about.
  for (std::string* text : {&said.why, &said.advice})
    *text = std::regex_replace(*text, std::regex("(other|takes|at most) [0-9.]+"), "$1 N");
  return said;
}

}  // namespace

Table train_cases() {
  return {
      {"TN-TRAIN-001", "", [] { return thrown([] { nn::Linear(768, 10)(zeros({4, 784})); }); }},
      {"TN-TRAIN-001", "within a network", [] { return thrown([] { nn::sequential(nn::Flatten(), nn::Linear(12, 10))(zeros({4, 4, 4})); }); }},
      {"TN-TRAIN-002", "", [] { return thrown([] { Twice(); }); }},
      {"TN-TRAIN-003", "", [] { return thrown([] { nn::Linear net(2, 2); auto s = net.state_dict(); s["weigth"] = s["weight"]; s.erase("weight"); net.load_state_dict(s); }); }},
      {"TN-TRAIN-004", "", [] { return thrown([] { nn::Linear net(2, 2); auto s = net.state_dict(); s["weight"] = zeros({3, 2}); net.load_state_dict(s); }); }},
      {"TN-TRAIN-005", "", [] { return thrown([] { nn::init::kaiming_uniform_(zeros({10})); }); }},
      {"TN-TRAIN-006", "", [] { return thrown([] { nn::Conv2d(nn::Conv2dSpec{.in = 6, .out = 8, .groups = 4}); }); }},
      {"TN-TRAIN-007", "", [] { return thrown([] { nn::mse_loss(zeros({64, 1}), zeros({64})); }); }},
      {"TN-TRAIN-008", "", [] { return thrown([] {
         nn::Linear net(2, 2);
         optim::AdamW adam(net.parameters());
         adam.step({zeros({2, 2}), zeros({2})});
         optim::SGD(net.parameters()).load_state(adam.state());
       }); }},
      {"TN-TRAIN-009", "", [] { return thrown([] { optim::SGD({zeros({2})}, {.lr = -0.1}); }); }},
      {"TN-TRAIN-010", "", [] { return thrown([] { optim::SGD(std::vector<Tensor>{}); }); }},
      {"TN-TRAIN-011", "", [] { return thrown([] { optim::SGD({zeros({2}), zeros({3})}).step({zeros({2})}); }); }},
      {"TN-TRAIN-012", "", [] { return thrown([] { optim::SGD({zeros({2})}, {.nesterov = true}); }); }},
      {"TN-TRAIN-013", "", [] { return thrown([] { optim::Adam({zeros({2})}, {.beta2 = 1.5}); }); }},
      {"TN-TRAIN-014", "", [] { return thrown([] { optim::one_cycle(0); }); }},
      {"TN-TRAIN-015", "", resume_another_run},
      {"TN-TRAIN-016", "", [] { return thrown([] { train::TrainerOptions o; o.read_every = 1; o.epochs = 50; Run run(40, 1e30, 8, o); run.trainer.fit(); }); }},
      {"TN-TRAIN-017", "", run_out_of_memory},
      {"TN-TRAIN-020", "its form", [] { return build({"flatten", "linear"}); }},
      {"TN-TRAIN-020", "its name", [] { return build({"flatten", "linaer 10"}); }},
      {"TN-TRAIN-020", "its size", [] { return build({"linear 0"}); }},
      {"TN-TRAIN-021", "behind flatten", [] { return build({"flatten", "conv 8 3"}); }},
      {"TN-TRAIN-021", "too small", [] { return build({"pool 2", "pool 2", "pool 2"}); }},
      {"TN-TRAIN-022", "", [] { return thrown([] { train::preset_layers("lennet", 10); }); }},
  };
}

}  // namespace tenon::errors
