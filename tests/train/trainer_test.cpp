// The trainer: learning, exact resumption, stopping, accounting, errors.
#include <csignal>
#include <cmath>

#include "tests/train/run.h"

namespace tenon::test {
namespace {

const std::vector<std::string> kWithDropout = {"flatten", "linear 32", "relu", "dropout 0.2", "linear 10"};
const std::vector<std::string> kSmallCnn = {"conv 4 3", "batchnorm", "relu", "pool 2", "conv 8 3", "relu", "pool 2", "linear 10"};

TEST(Ratio, adds_parts_of_any_size_exactly) {
  train::Ratio r;
  r += {57, 64};
  r += {12, 16};
  EXPECT_EQ(r.value(), 69.0 / 80.0);
  EXPECT_TRUE(std::isnan(train::Ratio{}.value()));
}

TEST(Trainer, halves_the_first_loss_on_2000_images_with_the_linked_kernels_alone) {
  TENON_NEEDS_IMAGES();
  const RuntimeScope scope(reference_only());
  TrainingRun run(some_images(0, 2000), {.trainer = {.epochs = 2}});
  const train::FitReport r = run.trainer->fit();
  EXPECT_EQ(r.steps, 80);
  EXPECT_EQ(r.images, 4000);
  ASSERT_EQ(run.losses.values.size(), 80u);
  double last = 0;
  for (size_t i = 70; i < 80; ++i) last += run.losses.values[i] / 10;
  EXPECT_LT(last, run.losses.values[0] / 2);
  EXPECT_EQ(r.loss.denominator, 2000);
  EXPECT_GT(r.accuracy.value(), 0.7);
}

// Every kind of state is in it: moments, schedule, order of samples, dropout's counters, statistics of batch norm.
void check_resumption(const std::vector<std::string>& layers, int64_t split) {
  TempFolder folder;
  const auto images = some_images(0, 400);
  RunOptions o{.layers = layers, .batch = 32, .trainer = {.epochs = 3, .checkpoint = {.dir = folder.path + "/a", .every = split}}};
  TrainingRun whole(images, o);
  const train::FitReport complete = whole.trainer->fit();
  manual_seed(99);
  TrainingRun second(images, o);
  manual_seed(12345);  // what the checkpoint must put right
  char name[32];
  std::snprintf(name, sizeof name, "/a/step-%09lld", static_cast<long long>(split));
  second.trainer->resume(folder.path + name);
  EXPECT_EQ(second.trainer->step(), split);
  const train::FitReport resumed = second.trainer->fit();
  ASSERT_EQ(second.losses.values.size(), whole.losses.values.size() - static_cast<size_t>(split));
  for (size_t i = 0; i < second.losses.values.size(); ++i)
    ASSERT_EQ(second.losses.values[i], whole.losses.values[i + static_cast<size_t>(split)]) << "step " << second.losses.steps[i];
  EXPECT_EQ(resumed.loss, complete.loss);
  EXPECT_EQ(resumed.accuracy, complete.accuracy);
  const auto a = whole.net.state_dict(), b = second.net.state_dict();
  for (const auto& [key, t] : a) EXPECT_EQ(t.to_vector<float>(), b.at(key).to_vector<float>()) << key;
}

TEST(Trainer, goes_on_bit_for_bit_after_a_checkpoint_within_an_epoch) {
  TENON_NEEDS_IMAGES();
  const RuntimeScope scope(reference_only());
  check_resumption(kWithDropout, 17);
}
TEST(Trainer, goes_on_bit_for_bit_after_a_checkpoint_between_epochs) {
  TENON_NEEDS_IMAGES();
  const RuntimeScope scope(reference_only());
  check_resumption(kWithDropout, 13);
}
TEST(Trainer, goes_on_bit_for_bit_with_batch_norm) {
  TENON_NEEDS_IMAGES();
  const RuntimeScope scope(reference_only());
  check_resumption(kSmallCnn, 20);
}

TEST(Trainer, refuses_a_checkpoint_of_another_run_and_changes_nothing) {
  TENON_NEEDS_IMAGES();
  TempFolder folder;
  const auto images = some_images(0, 100);
  RunOptions o{.layers = kWithDropout, .trainer = {.checkpoint = {.dir = folder.path}}};
  TrainingRun first(images, o);
  const std::string at = first.trainer->fit().checkpoint;
  o.layers = {"flatten", "linear 31", "relu", "dropout 0.2", "linear 10"};
  TrainingRun second(images, o);
  const auto before = second.net.parameters()[0].to_vector<float>();
  try {
    second.trainer->resume(at);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.id(), "TN-TRAIN-015");
    EXPECT_NE(e.why().find("1.bias is f32[32] there, f32[31] here"), std::string::npos) << e.why();
  }
  EXPECT_EQ(second.net.parameters()[0].to_vector<float>(), before);
}

TEST(Trainer, saves_and_returns_when_interrupted) {
  TENON_NEEDS_IMAGES();
  TempFolder folder;
  const train::Interrupt interrupt;
  struct Press final : train::Callback {
    void on_losses(std::span<const train::StepLoss> s) override { if (s.back().step == 5) std::raise(SIGINT); }
  } press;
  TrainingRun run(some_images(0, 400), {.trainer = {.epochs = 2, .read_every = 1, .checkpoint = {.dir = folder.path}, .stop = interrupt.flag()}});
  run.trainer->add(press);
  const train::FitReport r = run.trainer->fit();
  EXPECT_EQ(r.stopped_by, SIGINT);
  EXPECT_EQ(r.steps, 5);
  EXPECT_NE(r.checkpoint.find("step-000000005"), std::string::npos) << r.checkpoint;
}

TEST(Trainer, computes_the_same_losses_on_the_simulated_accelerator) {
  TENON_NEEDS_IMAGES();
  Device sim;
  try {
    sim = default_runtime().device("sim:0", TN_POLICY_REQUIRE);
  } catch (const Error&) {
    GTEST_SKIP() << "the sim plugin is not there";
  }
  const auto images = some_images(0, 160);
  RunOptions o{.layers = kSmallCnn, .device = device("cpu:0"), .batch = 8, .lr = 1e-3, .channels_last = true, .trainer = {.max_steps = 20}};
  TrainingRun cpu(images, o);
  cpu.trainer->fit();
  o.device = sim;
  o.channels_last = false;
  TrainingRun other(images, o);
  other.trainer->fit();
  ASSERT_EQ(cpu.losses.values.size(), 20u);
  ASSERT_EQ(other.losses.values.size(), 20u);
  for (size_t i = 0; i < 20; ++i) EXPECT_NEAR(other.losses.values[i], cpu.losses.values[i], 1e-4 * std::abs(cpu.losses.values[i])) << "step " << i + 1;
}

TEST(Trainer, counts_only_valid_samples) {
  // Labels -100 are ignored: the loss is the mean over the others, computed here in double.
  const RuntimeScope scope(reference_only());
  struct Two final : train::BatchSource {
    bool next(train::Batch& out) override {
      if (done) return done = false;
      out = {tensor({{1.f, 2.f}, {3.f, 1.f}, {0.f, 5.f}}), tensor({int64_t{0}, int64_t{-100}, int64_t{1}}), 3, 2};
      return done = true;
    }
    int64_t batches_per_epoch() const override { return 1; }
    int64_t batch_size() const override { return 3; }
    data::SamplerState state() const override { return {}; }
    void restore(const data::SamplerState&) override {}
    bool done = false;
  } source;
  struct Same : nn::Layer<Same> {
    Same() : Layer("Same") { scale = parameter("scale", ones({1})); }
    Tensor forward(const Tensor& x) override { return x * scale; }
    Tensor scale;
  } model;
  optim::SGD optimizer(model.parameters(), {.lr = 0});
  train::Trainer trainer({model, source, optimizer}, {});
  const train::FitReport r = trainer.fit();
  const double expected = std::log(std::exp(1.0) + std::exp(2.0)) - 1 + std::log(1 + std::exp(5.0)) - 5;
  EXPECT_NEAR(r.loss.numerator, expected, 1e-6);
  EXPECT_EQ(r.loss.denominator, 2);
  EXPECT_EQ(r.accuracy, (train::Ratio{1, 2}));
}

TEST(Trainer, says_when_the_loss_is_no_longer_finite) {
  TENON_NEEDS_IMAGES();
  TrainingRun run(some_images(0, 200), {.lr = 1e30, .trainer = {.epochs = 3}});
  try {
    run.trainer->fit();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.id(), "TN-TRAIN-016");
    EXPECT_EQ(e.summary(), "the loss is no longer a finite number");
    EXPECT_EQ(e.advice(), "lower the learning rate, or set clip_norm");
  }
}

TEST(Trainer, names_what_is_held_and_the_largest_batch_when_memory_is_short) {
  TENON_NEEDS_IMAGES();
  RuntimeOptions limited;
  limited.memory_limit_bytes = 6 << 20;
  const RuntimeScope scope(limited);
  const auto images = some_images(0, 2000);
  RunOptions o{.layers = {"flatten", "linear 256", "relu", "linear 10"}, .batch = 2000};
  int64_t largest = 0;
  {
    TrainingRun run(images, o);
    const auto before = run.net.parameters()[0].to_vector<float>();
    try {
      run.trainer->fit();
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.id(), "TN-TRAIN-017") << e.what();
      EXPECT_EQ(e.status(), TN_E_OOM);
      EXPECT_EQ(e.summary(), "out of memory: a training step of 2000 samples does not fit on cpu:0");
      EXPECT_NE(e.why().find("limit 6.0 MiB; held: parameters 0.8 MiB, optimizer 0.0 MiB, other "), std::string::npos) << e.why();
      EXPECT_EQ(std::sscanf(e.advice().c_str(), "use a batch of at most %ld, or raise the memory limit", &largest), 1) << e.advice();
    }
    EXPECT_EQ(run.net.parameters()[0].to_vector<float>(), before);
  }
  ASSERT_GT(largest, 1);
  ASSERT_LT(largest, 2000);
  o.batch = static_cast<uint32_t>(largest);  // the advice, taken
  o.trainer.max_steps = 3;
  TrainingRun again(images, o);
  EXPECT_EQ(again.trainer->fit().steps, 3);
}

TEST(Evaluate, gives_the_same_numbers_for_a_saved_and_loaded_model) {
  TENON_NEEDS_IMAGES();
  TempFolder folder;
  TrainingRun run(some_images(0, 500), {.layers = kSmallCnn, .channels_last = true});
  run.trainer->fit();
  const auto test = some_images(500, 300);
  const train::EvaluateOptions o{.batch = 128, .normalise = run.normalise, .channels_last = true};
  const train::Evaluation a = train::evaluate(run.net, test, o);
  const auto state = run.net.state_dict();
  save_safetensors(folder.path + "/m.safetensors", {state.begin(), state.end()});
  nn::Sequential loaded = train::build_model(kSmallCnn, test->shape());
  loaded.load_state_dict(load_safetensors(folder.path + "/m.safetensors"));
  const train::Evaluation b = train::evaluate(loaded, test, o);
  EXPECT_EQ(a.accuracy, b.accuracy);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.classes, b.classes);
  int64_t samples = 0, predicted = 0, correct = 0;
  for (const train::ClassCount& c : a.classes) samples += c.samples, predicted += c.predicted, correct += c.correct;
  EXPECT_EQ(samples, 300);
  EXPECT_EQ(predicted, 300);
  EXPECT_EQ(static_cast<double>(correct), a.accuracy.numerator);
  EXPECT_TRUE(run.net.is_training());
}

}  // namespace
}  // namespace tenon::test
