// A device that is lost in the middle of work: who is told, in which words, and that everything else goes on.
#include <tenon/train/train.hpp>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/sim/machine.h"

namespace tenon::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kSoonSeconds = 10;  // far less than a hang, far more than a busy machine needs
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

Tensor three(const Machine& m, const char* device) { return from_vector(std::vector<float>{1, 2, 3}, {3}, {.device = m.device(device)}); }

TEST(Loss, comes_with_the_launch_that_is_asked_for) {
  const Machine m("sim.lose_after=3");
  const Tensor x = three(m, "sim:0");
  EXPECT_EQ((x + x).to_vector<float>(), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ((x * x).to_vector<float>(), (std::vector<float>{1, 4, 9}));
  const Error e = thrown([&] { (x - x).to_vector<float>(); });
  EXPECT_EQ(e.status(), TN_E_DEVICE_LOST) << e.what();
  EXPECT_EQ(e.id(), "TN-DEVICE-052");
  EXPECT_EQ(e.summary(), "sim:0 was lost");
  EXPECT_EQ(e.why(), "sim.lose_after=3, and that launch has come");
}

TEST(Loss, is_told_to_every_later_call_and_in_the_list_of_devices) {
  const Machine m("sim.lose_after=1");
  const Tensor x = three(m, "sim:0");
  thrown([&] { (x + x).to_vector<float>(); });
  const std::function<void()> later[] = {
      [&] { (x + x).to_vector<float>(); }, [&] { x.to_vector<float>(); }, [&] { three(m, "sim:0"); },
      [&] { zeros({1 << 20}, {.device = m.device("sim:0")}); }, [&] { x.to(m.device("cpu:0")); }};
  for (size_t i = 0; i < std::size(later); ++i) {
    const Error e = thrown(later[i]);
    EXPECT_EQ(e.status(), TN_E_DEVICE_LOST) << i << ": " << e.what();
    EXPECT_TRUE(says(e, "sim:0")) << i << ": " << e.what();
    EXPECT_TRUE(says(e, "lost")) << i << ": " << e.what();
  }
  const tn_device_entry entry = m.entry("sim:0");
  EXPECT_EQ(entry.verdict, static_cast<uint32_t>(-TN_E_DEVICE_LOST));
  EXPECT_TRUE(std::string(entry.cause).find("it was lost: sim:0 was lost") != std::string::npos) << entry.cause;
  expect_cpu_goes_on(m);
}

// 200 additions are on their way, and the 50th loses the device: its result, and all after it, must not be believed.
TEST(Loss, in_the_middle_of_a_queue_leaves_no_result_behind_it) {
  const Machine m("sim.lose_after=50;sim.latency_ns=20000");
  Tensor x = three(m, "sim:0");
  const auto begin = Clock::now();
  const Error e = thrown([&] {
    for (int i = 0; i < 200; ++i) x = x + 1.0;
    x.to_vector<float>();
  });
  EXPECT_EQ(e.status(), TN_E_DEVICE_LOST) << e.what();
  EXPECT_TRUE(says(e, "sim:0")) << e.what();
  EXPECT_LT(seconds_since(begin), kSoonSeconds);
  expect_cpu_goes_on(m);
}

TEST(Loss, takes_only_the_device_that_is_named) {
  const Machine m("sim.devices=3;sim.lose_after=2;sim.lose_device=1");
  for (const char* name : {"sim:0", "sim:1", "sim:2"}) {
    const Tensor x = three(m, name);
    const Error e = thrown([&] { (x + x + x).to_vector<float>(); });
    EXPECT_EQ(e.status(), std::string(name) == "sim:1" ? TN_E_DEVICE_LOST : TN_OK) << e.what();
  }
  expect_cpu_goes_on(m);
}

TEST(Loss, is_told_to_every_thread_that_waits) {
  const Machine m("sim.lose_after=10;sim.latency_ns=5000000");
  const Device sim = m.device("sim:0");  // a thread that asks for it by name after the loss would get another
  std::atomic<int> told{0};
  const auto begin = Clock::now();
  std::vector<std::thread> all;
  for (int i = 0; i < 4; ++i)
    all.emplace_back([&] {
      const Error e = thrown([&] {
        Tensor x = from_vector(std::vector<float>{1, 2, 3}, {3}, {.device = sim});
        for (int k = 0; k < 10; ++k) x = x + 1.0;
        x.to_vector<float>();
      });
      told += e.status() == TN_E_DEVICE_LOST;
    });
  for (std::thread& t : all) t.join();
  EXPECT_EQ(told.load(), 4);
  EXPECT_LT(seconds_since(begin), kSoonSeconds);
}

TEST(Loss, ends_when_the_plugin_is_loaded_again) {
  const Machine m("sim.lose_after=2");
  {
    const Tensor x = three(m, "sim:0");
    EXPECT_EQ(thrown([&] { (x + x + x).to_vector<float>(); }).status(), TN_E_DEVICE_LOST);
  }
  tn_diag d{sizeof d};
  ASSERT_EQ(tn_plugin_unload(m.get(), m.entry("sim:0").plugin, 1000000000, &d), TN_OK) << d.msg;
  ASSERT_EQ(tn_plugin_load(m.get(), TENON_PLUGINS "/libtenon_backend_sim.so", nullptr, &d), TN_OK) << d.msg;
  const auto works = [&] {
    const Tensor x = three(m, "sim:0");
    EXPECT_EQ((x + x).to_vector<float>(), (std::vector<float>{2, 4, 6}));
  };
  works();  // on the queue that this thread has kept
}

// Which of two classes a point is in: learned within few steps.
struct Points final : train::BatchSource {
  explicit Points(Device d) : x(from_vector(std::vector<float>{0, 0, 1, 1, 0, 1, 1, 0}, {4, 2}).to(d)), y(tensor({int64_t{0}, int64_t{0}, int64_t{1}, int64_t{1}}).to(d)) {}
  bool next(train::Batch& out) override {
    if (at == batches_per_epoch()) return at = 0, false;
    return ++at, out = {x, y, 4, 4}, true;
  }
  int64_t batches_per_epoch() const override { return 10; }
  int64_t batch_size() const override { return 4; }
  data::SamplerState state() const override { return {}; }
  void restore(const data::SamplerState&) override {}
  Tensor x, y;
  int64_t at = 0;
};

struct Learning {
  explicit Learning(Device d, train::TrainerOptions o) : net(made(d)), source(d), optimizer(net.parameters(), {.lr = 0.1}), trainer({net, source, optimizer}, o) {}
  static nn::Sequential made(Device d) {
    manual_seed(5);
    auto net = nn::sequential(nn::Linear(2, 8), nn::Tanh(), nn::Linear(8, 2));
    net.move_to(d);
    return net;
  }
  nn::Sequential net;
  Points source;
  optim::SGD optimizer;
  train::Trainer trainer;
};

TEST(Loss, ends_a_training_that_goes_on_elsewhere_from_its_checkpoint) {
  const Machine m("sim.lose_after=400;sim.latency_ns=20000");
  std::string name = (std::filesystem::temp_directory_path() / "tenon-sim-XXXXXX").string();
  const std::string folder = ::mkdtemp(name.data());
  const train::TrainerOptions o{.epochs = 20, .checkpoint = {.dir = folder, .every = 2}};
  const auto begin = Clock::now();
  {
    Learning there(m.device("sim:0"), o);
    const Error e = thrown([&] { there.trainer.fit(); });
    EXPECT_EQ(e.status(), TN_E_DEVICE_LOST) << e.what();
    EXPECT_TRUE(says(e, "sim:0")) << e.what();
  }
  EXPECT_LT(seconds_since(begin), kSoonSeconds);
  std::string last;
  for (const auto& f : std::filesystem::directory_iterator(folder))
    if (f.path().filename().string().rfind("step-", 0) == 0) last = std::max(last, f.path().string());
  ASSERT_NE(last, "") << "no checkpoint before the loss";
  Learning here(m.device("cpu:0"), o);
  here.trainer.resume(last);
  EXPECT_GE(here.trainer.step(), 2);
  EXPECT_EQ(here.trainer.fit().steps, 200);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tenon::test
