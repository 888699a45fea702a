// Modules, losses, optimizers and schedules. Expected numbers come from the published formulas, computed here in double.
#include <gtest/gtest.h>
#include <tenon/tenon.hpp>

#include <cmath>
#include <numbers>

namespace tenon::test {
namespace {

TEST(Module, has_paths_states_and_shared_identity) {
  auto net = nn::sequential(nn::Linear(3, 4), nn::ReLU(), nn::sequential(nn::Linear(4, 2, false)));
  std::vector<std::string> names;
  for (auto& [name, t] : net.named_parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"0.weight", "0.bias", "2.0.weight"}));
  EXPECT_EQ(net.parameter_count(), 12 + 4 + 8);
  auto other = nn::sequential(nn::Linear(3, 4), nn::ReLU(), nn::sequential(nn::Linear(4, 2, false)));
  other.load_state_dict(net.state_dict());
  const Tensor x = randn({5, 3});
  EXPECT_EQ(net(x).to_vector<float>(), other(x).to_vector<float>());
  net.convert_to(f64);
  EXPECT_EQ(net.parameters()[0].dtype(), f64);
  EXPECT_TRUE(net.parameters()[0].requires_grad());
}

TEST(Module, refuses_a_state_that_does_not_fit) {
  auto net = nn::sequential(nn::Linear(3, 4));
  nn::StateDict s = net.state_dict();
  s["0.weigth"] = s["0.weight"];
  s.erase("0.weight");
  try {
    net.load_state_dict(s);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.id(), "TN-TRAIN-003");
    EXPECT_EQ(e.why(), "1 missing: 0.weight; 1 unexpected: 0.weigth");
    EXPECT_EQ(e.advice(), "rename 0.weigth to 0.weight");
  }
  EXPECT_EQ(net.load_state_dict(s, false).missing, (std::vector<std::string>{"0.weight"}));
}

TEST(Module, errors_name_the_layer_and_how_it_was_built) {
  auto net = nn::sequential(nn::Flatten(), nn::Linear(768, 128));
  try {
    net(zeros({64, 784}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.id(), "TN-TRAIN-001");
    EXPECT_NE(e.where().find("nn_optim_test.cpp:"), std::string::npos) << e.where();
    EXPECT_NE(e.where().find("in 1 (Linear)"), std::string::npos) << e.where();
    EXPECT_NE(e.why().find("Linear was built with in=768 but receives 784"), std::string::npos) << e.why();
    EXPECT_EQ(e.advice(), "build it as Linear(784, 128)");
  }
}

TEST(BatchNorm, keeps_running_statistics_and_uses_them_in_eval) {
  nn::BatchNorm2d bn(1);
  const Tensor x = from_vector(std::vector<float>{1, 2, 3, 6}, {1, 1, 2, 2});
  const auto y = bn(x).to_vector<double>();
  EXPECT_NEAR(y[0], (1 - 3) / std::sqrt(3.5 + 1e-5), 1e-6);
  EXPECT_NEAR(bn.running_mean.item<double>(), 0.3, 1e-6);
  EXPECT_NEAR(bn.running_var.item<double>(), 0.9 + 0.1 * 14.0 / 3, 1e-6);
  bn.eval();
  EXPECT_NEAR(bn(x).to_vector<double>()[3], (6 - 0.3) / std::sqrt(0.9 + 1.4 / 3 + 1e-5), 1e-5);
}

TEST(Dropout, is_identity_in_eval_and_keeps_the_mean) {
  Generator g(3);
  nn::Dropout d(0.25, &g);
  const Tensor x = ones({20000});
  EXPECT_NEAR(mean(d(x)).item<double>(), 1, 0.02);
  d.eval();
  EXPECT_TRUE(d(x).is(x));
}

TEST(CrossEntropy, is_the_mean_over_valid_rows) {  // A09
  const Tensor logits = tensor({{1.0, 2.0}, {0.5, -1.0}, {3.0, 0.0}}).set_requires_grad(true);
  auto row = [](double right, double wrong) { return std::log(std::exp(right) + std::exp(wrong)) - right; };
  EXPECT_NEAR(nn::cross_entropy(logits, tensor({1, -100, 0})).item<double>(), (row(2, 1) + row(3, 0)) / 2, 1e-12);
  const Tensor none = nn::cross_entropy(logits, tensor({-100, -100, -100}));
  EXPECT_EQ(none.item<double>(), 0);
  EXPECT_EQ(grad(none, logits).to_vector<double>(), std::vector<double>(6, 0.0));
}

const std::vector<double> kStart = {1.0, -2.0, 0.5};
std::vector<double> gradient_at(int t) { return {0.1 * t, -0.3 + 0.05 * t, 0.2 / t}; }

template <class Opt, class Options>
std::vector<double> run(Options o, int steps) {
  Tensor p = from_vector(kStart, {3}).set_requires_grad(true);
  Opt opt({p}, o);
  for (int t = 1; t <= steps; ++t) opt.step({from_vector(gradient_at(t), {3})});
  return p.detach().to_vector<double>();
}

TEST(SGD, agrees_with_the_formula) {
  for (bool nesterov : {false, true})
    for (double dampening : {0.0, 0.3}) {
      if (nesterov && dampening != 0) continue;
      auto want = kStart, b = std::vector<double>(3);
      for (int t = 1; t <= 4; ++t)
        for (int i = 0; i < 3; ++i) {
          double g = gradient_at(t)[i] + 0.01 * want[i];
          b[i] = t == 1 ? g : 0.9 * b[i] + (1 - dampening) * g;
          want[i] -= 0.1 * (nesterov ? g + 0.9 * b[i] : b[i]);
        }
      const auto got = run<optim::SGD>(optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = dampening, .weight_decay = 0.01, .nesterov = nesterov}, 4);
      for (int i = 0; i < 3; ++i) EXPECT_NEAR(got[i], want[i], 1e-14) << nesterov << dampening;
    }
  const auto plain = run<optim::SGD>(optim::SGDOptions{.lr = 0.5}, 1);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(plain[i], kStart[i] - 0.5 * gradient_at(1)[i], 1e-15);
}

std::vector<double> adam_by_formula(double coupled, double decoupled, int steps) {
  auto p = kStart;
  std::vector<double> m(3), v(3);
  for (int t = 1; t <= steps; ++t)
    for (int i = 0; i < 3; ++i) {
      p[i] *= 1 - 1e-2 * decoupled;
      const double g = gradient_at(t)[i] + coupled * p[i];
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.999 * v[i] + 0.001 * g * g;
      p[i] -= 1e-2 * (m[i] / (1 - std::pow(0.9, t))) / (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-8);
    }
  return p;
}

TEST(Adam, agrees_with_the_formula) {
  const auto adam = run<optim::Adam>(optim::AdamOptions{.lr = 1e-2, .weight_decay = 0.1}, 5), want = adam_by_formula(0.1, 0, 5);
  const auto adamw = run<optim::AdamW>(optim::AdamWOptions{.lr = 1e-2, .weight_decay = 0.1}, 5), want_w = adam_by_formula(0, 0.1, 5);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(adam[i], want[i], 1e-12);
    EXPECT_NEAR(adamw[i], want_w[i], 1e-12);
  }
}

TEST(Optimizer, goes_on_bit_for_bit_from_its_state) {  // A10
  auto make = [](const Tensor& p) { return std::make_unique<optim::AdamW>(std::vector<Tensor>{p}, optim::AdamWOptions{.lr = 1e-2}); };
  auto steps = [](optim::Optimizer& opt, optim::Scheduler& s, int from, int to) {
    for (int t = from; t <= to; ++t) opt.step({from_vector(gradient_at(t), {3})}), s.step();
  };
  Tensor whole = from_vector(kStart, {3}).set_requires_grad(true);
  auto a = make(whole);
  optim::Scheduler sa(*a, optim::one_cycle(10));
  steps(*a, sa, 1, 7);

  Tensor part = from_vector(kStart, {3}).set_requires_grad(true);
  auto b = make(part);
  optim::Scheduler sb(*b, optim::one_cycle(10));
  steps(*b, sb, 1, 3);
  Tensor later = part.detach().clone().set_requires_grad(true);
  auto c = make(later);
  optim::Scheduler sc(*c, optim::one_cycle(10));
  c->load_state(b->state());
  sc.seek(sb.position());
  steps(*c, sc, 4, 7);
  EXPECT_EQ(whole.detach().to_vector<double>(), later.detach().to_vector<double>());
  optim::SGD sgd({later}, {.lr = 1});
  try { sgd.load_state(b->state()); FAIL(); } catch (const Error& e) { EXPECT_EQ(e.id(), "TN-TRAIN-008"); }
}

TEST(Schedule, values_of_the_published_formulas) {
  const double pi = std::numbers::pi;
  EXPECT_DOUBLE_EQ(optim::step_decay(3, 0.5)->lr(7, 8), 2);
  EXPECT_NEAR(optim::cosine(10, 0.1)->lr(4, 1), 0.1 + 0.9 * (1 + std::cos(pi * 0.4)) / 2, 1e-15);
  const auto one = optim::one_cycle(100);  // peak after 0.3 * 100 - 1 = 29 steps
  EXPECT_NEAR(one->lr(0, 1), 0.04, 1e-15);
  EXPECT_NEAR(one->lr(29, 1), 1, 1e-15);
  EXPECT_NEAR(one->lr(99, 1), 0.04 / 1e4, 1e-12);
  EXPECT_NEAR(one->lr(64, 1), 4e-6 + (1 - 4e-6) / 2 * (1 + std::cos(pi * 35 / 70)), 1e-12);
  EXPECT_NEAR(*one->momentum(29), 0.85, 1e-15);
  EXPECT_NEAR(*one->momentum(99), 0.95, 1e-15);
  const auto w = optim::warmup(4, optim::constant());
  EXPECT_DOUBLE_EQ(w->lr(1, 1), 0.25);
  EXPECT_DOUBLE_EQ(w->lr(9, 1), 1);
}

TEST(Clip, scales_to_the_norm) {
  Tensor a = zeros({2}).set_requires_grad(true), b = zeros({1}).set_requires_grad(true);
  a.set_grad(tensor({3.f, 0.f}));
  b.set_grad(tensor({4.f}));
  EXPECT_NEAR(optim::clip_grad_norm({a, b}, 1), 5, 1e-6);
  EXPECT_NEAR(a.grad().to_vector<float>()[0], 0.6f, 1e-6f);
}

TEST(Training, a_small_net_learns_xor) {
  manual_seed(1);
  auto net = nn::sequential(nn::Linear(2, 16), nn::Tanh(), nn::Linear(16, 2));
  const Tensor x = tensor({{0.f, 0.f}, {0.f, 1.f}, {1.f, 0.f}, {1.f, 1.f}}), y = tensor({0, 1, 1, 0});
  optim::AdamW opt(net.parameters(), {.lr = 0.05});
  double last = 0;
  for (int i = 0; i < 200; ++i) {
    const Tensor loss = nn::cross_entropy(net(x), y);
    loss.backward();
    opt.step();
    opt.zero_grad();
    last = loss.item<double>();
  }
  EXPECT_LT(last, 0.05);
}

}  // namespace
}  // namespace tenon::test
