// Gradients: against finite differences, twice, through views and broadcasting; versions, memory, threads, texts.
#include "tests/framework/gradcheck.h"

#include <thread>

namespace tenon::test {
namespace {

struct Case { const char* name; Fn f; std::vector<Shape> in; };

std::vector<Case> smooth_cases() {
  using V = const std::vector<Tensor>&;
  return {
      {"add_broadcast", [](V x) { return x[0] + x[1]; }, {{2, 3}, {3}}},
      {"sub_scalar", [](V x) { return 2.0 - x[0] * 3.0; }, {{4}}},
      {"mul_broadcast", [](V x) { return x[0] * x[1]; }, {{2, 1, 3}, {4, 1}}},
      {"div", [](V x) { return x[0] / (square(x[1]) + 1.0); }, {{3}, {2, 3}}},
      {"exp_tanh_sigmoid", [](V x) { return exp(x[0]) * tanh(x[0]) + sigmoid(x[0]); }, {{5}}},
      {"log_sqrt", [](V x) { return log(square(x[0]) + 0.5) * sqrt(square(x[0]) + 1.0); }, {{4}}},
      {"sin_cos_erf", [](V x) { return sin(x[0]) * cos(x[0]) + erf(x[0]); }, {{4}}},
      {"gelu", [](V x) { return gelu(x[0]) + gelu(x[0], Gelu::tanh) + silu(x[0]) + softplus(x[0]); }, {{6}}},
      {"matmul", [](V x) { return matmul(x[0], x[1]); }, {{2, 3}, {3, 4}}},
      {"matmul_batch", [](V x) { return matmul(x[0], x[1]); }, {{2, 2, 3}, {3, 2}}},
      {"linear", [](V x) { return linear(x[0], x[1], x[2]); }, {{2, 3}, {4, 3}, {4}}},
      {"sum_mean", [](V x) { return sum(x[0], {0}) * mean(square(x[0]), {1}, true); }, {{3, 4}}},
      {"variance_logsumexp", [](V x) { return variance(x[0], {1}) + logsumexp(x[0], {1}); }, {{3, 4}}},
      {"softmax", [](V x) { return softmax(x[0]) + log_softmax(x[0], 0); }, {{3, 4}}},
      {"layer_norm", [](V x) { return layer_norm(x[0], x[1], x[2]); }, {{3, 5}, {5}, {5}}},
      {"views", [](V x) { return (x[0].reshape({3, 4}).t() * x[0].permute({1, 0}).reshape({4, 3})).flatten(); }, {{2, 6}}},
      {"slice_flip_expand", [](V x) { return x[0].slice({Slice{{}, {}, -2}, Slice{1}}).flip({1}).expand({2, -1, -1}) * 2.0; }, {{5, 3}}},
      {"select_stack", [](V x) { return stack(std::vector<Tensor>{x[0][0], x[0][-1]}) * x[1]; }, {{3, 2}, {2}}},
      {"concat_pad", [](V x) { return pad(concat({x[0], x[1]}, 1), {1, 0}, {0, 2}); }, {{2, 2}, {2, 3}}},
      {"where", [](V x) { return where(x[0] > 0.0, square(x[0]), x[0] * 3.0); }, {{6}}},
  };
}

TEST(Gradient, agrees_with_finite_differences) {
  for (const Case& c : smooth_cases()) {
    SCOPED_TRACE(c.name);
    std::vector<Tensor> in;
    for (size_t k = 0; k < c.in.size(); ++k) in.push_back(values(c.in[k], 0.3 + 0.7 * static_cast<double>(k)));
    check_gradients(c.f, in);
  }
}

TEST(Gradient, of_a_gradient_agrees_with_finite_differences) {
  for (const Case& c : smooth_cases()) {
    SCOPED_TRACE(c.name);
    std::vector<Tensor> in;
    for (size_t k = 0; k < c.in.size(); ++k) in.push_back(values(c.in[k], 0.3 + 0.7 * static_cast<double>(k)));
    check_second(c.f, in);
  }
}

TEST(Gradient, of_convolution_and_pooling_agrees_with_finite_differences) {
  Conv2dOptions o;
  o.stride[0] = 2; o.pad_lo[0] = o.pad_hi[0] = o.pad_lo[1] = o.pad_hi[1] = 1; o.groups = 2;
  check_gradients([&](const std::vector<Tensor>& x) { return conv2d(x[0], x[1], x[2], o); },
                  {values({1, 2, 5, 4}), values({4, 1, 3, 3}), values({4})});
  check_gradients([](const std::vector<Tensor>& x) { return max_pool2d(x[0]) + avg_pool2d(x[0]); }, {values({1, 2, 4, 4})});
  check_gradients([](const std::vector<Tensor>& x) { return batch_norm(x[0], x[1], x[2]).y; },
                  {values({3, 2, 2, 2}), values({2}), values({2})}, 1e-5);
}

TEST(Gradient, third_order_of_a_power) {
  Tensor x = tensor({2.0, 3.0}).set_requires_grad(true);
  const GradOptions keep{.create_graph = true};
  const Tensor g1 = grad(sum(x * x * x * x), x, keep), g2 = grad(sum(g1), x, keep), g3 = grad(sum(g2), x);
  EXPECT_EQ(g1.to_vector<double>(), (std::vector<double>{32, 108}));
  EXPECT_EQ(g2.to_vector<double>(), (std::vector<double>{48, 108}));
  EXPECT_EQ(g3.to_vector<double>(), (std::vector<double>{48, 72}));
}

TEST(Gradient, ties_share_and_the_unchosen_side_gets_nothing) {  // A01, A03
  Tensor a = tensor({4.0, 5.0}).set_requires_grad(true), b = tensor({4.0, 2.0}).set_requires_grad(true);
  auto g = grad(sum(maximum(a, b)), {a, b});
  EXPECT_EQ(g[0].to_vector<double>(), (std::vector<double>{0.5, 1}));
  EXPECT_EQ(g[1].to_vector<double>(), (std::vector<double>{0.5, 0}));
  Tensor t = tensor({1.0, 3.0, 3.0}).set_requires_grad(true);
  EXPECT_EQ(grad(max(t), t).to_vector<double>(), (std::vector<double>{0, 0.5, 0.5}));
  Tensor x = tensor({-1.0, -4.0}).set_requires_grad(true), unchosen = tensor({1.0, 1.0}).set_requires_grad(true);
  const Tensor y = where(x > 0.0, unchosen, x);
  const double inf = INFINITY;
  const std::vector<Tensor> out{y}, in{unchosen}, seed{tensor({inf, double{NAN}})};
  EXPECT_EQ(grad(out, in, seed)[0].to_vector<double>(), (std::vector<double>{0, 0}));
}

TEST(Backward, sums_into_leaves_and_stops_at_detach) {
  Tensor x = tensor({1.f, 2.f}).set_requires_grad(true);
  sum(x * x).backward();
  sum(x * x.detach()).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{3, 6}));
  x.set_grad({});
  EXPECT_FALSE(x.grad().defined());
  { NoGrad off; EXPECT_FALSE((x * x).requires_grad()); }
  EXPECT_TRUE((x * x).requires_grad());
}

TEST(Backward, gradients_of_two_leaves_never_share_memory) {
  Tensor a = tensor({1.f, 2.f}).set_requires_grad(true), b = tensor({1.f, 2.f}).set_requires_grad(true);
  const Tensor seed = tensor({1.f, 1.f});
  (a + b).backward(seed);
  a.grad().mul_(10);
  EXPECT_EQ(b.grad().to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(seed.to_vector<float>(), (std::vector<float>{1, 1}));
}

std::string text_of(const std::function<void()>& f) {
  try { f(); } catch (const Error& e) { return e.what(); }
  return "nothing was thrown";
}
std::string id_of(const std::function<void()>& f) {
  try { f(); } catch (const Error& e) { return e.id(); }
  return "nothing was thrown";
}

TEST(Backward, refuses_a_kept_value_that_was_overwritten) {  // A04
  auto through = [](auto overwrite) {
    return id_of([&] {
      Tensor x = tensor({1.f, 2.f, 3.f}).set_requires_grad(true);
      Tensor y = sigmoid(x);
      overwrite(x, y);
      sum(y).backward();
    });
  };
  EXPECT_EQ(through([](Tensor&, Tensor& y) { y.detach().zero_(); }), "TN-GRAD-001");
  EXPECT_EQ(through([](Tensor&, Tensor& y) { NoGrad off; Tensor v = y.detach().slice({Slice{0, 1}}); v.fill_(7); }), "TN-GRAD-001");
  EXPECT_EQ(id_of([] {
    Tensor w = tensor({1.f, 2.f}).set_requires_grad(true);
    const Tensor loss = sum(square(w) * w);
    optim::SGD opt({w}, {.lr = 0.1});
    opt.step({ones_like(w)});
    loss.backward();
  }), "TN-GRAD-001");
}

TEST(Backward, says_what_was_overwritten) {
  Tensor x = tensor({1.f, 2.f, 3.f}).set_requires_grad(true);
  Tensor y = exp(x);
  const uint64_t kept = y.version();
  y.detach().zero_();
  const std::string text = text_of([&] { sum(y).backward(); });
  EXPECT_NE(text.find("error[TN-GRAD-001]: a value kept for the gradient was overwritten\n  where: autograd_test.cpp:"), std::string::npos) << text;
  EXPECT_NE(text.find(", op exp\n  why:   output 0 of exp, f32[3], was kept at version " + std::to_string(kept) + " and is now at version " +
                      std::to_string(kept + 1) + "\n  try:   write after backward, or write to a clone()"), std::string::npos) << text;
}

TEST(Backward, misuse_has_an_id) {
  Tensor x = tensor({1.f, 2.f}).set_requires_grad(true);
  const Tensor loss = sum(x * x);
  loss.backward();
  EXPECT_EQ(id_of([&] { loss.backward(); }), "TN-GRAD-002");
  EXPECT_EQ(id_of([&] { x.add_(1); }), "TN-GRAD-003");
  EXPECT_EQ(id_of([&] { Tensor y = x * x; Tensor v = y.reshape({2, 1}); v.mul_(2); }), "TN-GRAD-004");
  EXPECT_EQ(id_of([&] { tensor({1.f}).backward(); }), "TN-GRAD-005");
  EXPECT_EQ(id_of([&] { Tensor y = x * x; Tensor v = y.reshape({2, 1}); y.mul_(2); sum(v * 2).backward(); }), "TN-GRAD-007");
  EXPECT_EQ(id_of([&] { (x * x).backward(); }), "TN-GRAD-011");
  EXPECT_EQ(id_of([&] { grad(sum(x * x), tensor({1.f}).set_requires_grad(true)); }), "TN-GRAD-012");
  EXPECT_EQ(id_of([&] { (x * x).set_requires_grad(false); }), "TN-GRAD-013");
  EXPECT_EQ(id_of([&] { tensor({1, 2}).set_requires_grad(true); }), "TN-GRAD-014");
}

TEST(Backward, follows_an_in_place_write) {
  Tensor x = tensor({1.0, 2.0}).set_requires_grad(true);
  Tensor y = x * 3.0;
  y.add_(x);
  y.mul_(2);
  EXPECT_EQ(grad(sum(y), x).to_vector<double>(), (std::vector<double>{8, 8}));
}

struct SixTimes : Function {  // A06: f(x) = 6x, with an intermediate saved
  Tensor forward(std::span<const Tensor> in) override { const Tensor temp = in[0] * 2.0; save(temp); save(in[0]); return temp * 3.0; }
  std::vector<Tensor> backward(const Tensor& g) override { return {g * 3.0 * saved(0) / saved(1)}; }
};
struct Cube : Function {
  Tensor forward(std::span<const Tensor> in) override { save(in[0]); return in[0] * in[0] * in[0]; }
  std::vector<Tensor> backward(const Tensor& g) override { return {g * 3.0 * saved(0) * saved(0)}; }
};

TEST(CustomFunction, is_right_twice_or_refuses) {
  Tensor x = tensor({2.0, 3.0}).set_requires_grad(true);
  EXPECT_EQ(grad(sum(apply<SixTimes>({x})), x).to_vector<double>(), (std::vector<double>{6, 6}));
  EXPECT_EQ(id_of([&] { grad(sum(apply<SixTimes>({x})), x, {.create_graph = true}); }), "TN-GRAD-006");
  const Tensor g = grad(sum(apply<Cube>({x})), x, {.create_graph = true});
  EXPECT_EQ(g.to_vector<double>(), (std::vector<double>{12, 27}));
  EXPECT_EQ(grad(sum(g), x).to_vector<double>(), (std::vector<double>{12, 18}));
}

TEST(Tape, leaves_nothing_behind) {  // A12
  const int64_t tensors = live_tensors(), nodes = live_nodes();
  for (int i = 0; i < 300; ++i) {
    Tensor x = tensor({0.5f, 0.25f}).set_requires_grad(true);
    Tensor y = tanh(x) * x;
    sum(y).backward({}, true);
    const Tensor g = grad(sum(y * y), x, {.create_graph = true});
    sum(g).backward();
  }
  EXPECT_EQ(live_tensors(), tensors);
  EXPECT_EQ(live_nodes(), nodes);
}

struct SavesResultAndMore : Function {  // f(x) = 2x + 1
  Tensor forward(std::span<const Tensor> in) override {
    const Tensor twice = in[0] * 2.0, y = twice + 1.0;
    save(y);
    save(twice);
    return y;
  }
  std::vector<Tensor> backward(const Tensor& g) override { return {g * (saved(0) - saved(1)) * 2.0}; }
};

TEST(CustomFunction, gives_the_same_gradient_after_a_refusal) {
  Tensor x = tensor({2.0, 3.0}).set_requires_grad(true);
  const Tensor y = sum(apply<SavesResultAndMore>({x}));
  EXPECT_EQ(id_of([&] { grad(y, x, {.create_graph = true}); }), "TN-GRAD-006");
  EXPECT_EQ(grad(y, x).to_vector<double>(), (std::vector<double>{2, 2}));
}

TEST(Tape, leaves_nothing_behind_after_an_error) {
  const int64_t tensors = live_tensors(), nodes = live_nodes();
  {
    Tensor x = tensor({1.f, 2.f}).set_requires_grad(true);
    const std::pair<const char*, std::function<void()>> misuse[] = {
        {"TN-GRAD-001", [&] { Tensor y = exp(x); y.detach().zero_(); sum(y * y).backward(); }},
        {"TN-GRAD-002", [&] { Tensor y = sum(x * x); y.backward(); y.backward(); }},
        {"TN-GRAD-004", [&] { Tensor y = x * x, v = y.reshape({2, 1}); v.mul_(2); }},
        {"TN-GRAD-006", [&] { grad(sum(apply<SavesResultAndMore>({x})), x, {.create_graph = true}); }},
        {"TN-GRAD-007", [&] { Tensor y = x * x, v = y.reshape({2, 1}); y.mul_(2); sum(v * 2).backward(); }},
        {"TN-GRAD-007", [&] { Tensor y = x * x, v = y.reshape({2, 1}); y.mul_(2); v.flatten(); }},
        {"TN-GRAD-007", [&] { Tensor y = x * x, v = y.reshape({2}), z = x * 3; y.mul_(2); z.add_(v); }},
        {"TN-GRAD-011", [&] { (x * x).backward(); }},
        {"TN-GRAD-012", [&] { grad(sum(x * x), tensor({1.f}).set_requires_grad(true)); }},
    };
    for (const auto& [id, call] : misuse) {
      const int64_t before = live_tensors(), before_nodes = live_nodes();
      EXPECT_EQ(id_of(call), id);
      x.set_grad({});
      EXPECT_EQ(live_tensors(), before) << id;
      EXPECT_EQ(live_nodes(), before_nodes) << id;
    }
  }
  EXPECT_EQ(live_tensors(), tensors);
  EXPECT_EQ(live_nodes(), nodes);
}

TEST(Tape, a_long_chain_ends_without_recursion) {
  Tensor x = tensor({1.0}).set_requires_grad(true), y = x;
  for (int i = 0; i < 100000; ++i) y = y + 1.0;
  EXPECT_EQ(grad(sum(y), x).item<double>(), 1);
}

TEST(Tape, two_threads_differentiate_their_own_graphs_over_shared_leaves) {
  Tensor w = tensor({1.f, 2.f, 3.f}).set_requires_grad(true);
  auto work = [&] {
    for (int i = 0; i < 200; ++i) {
      const Tensor loss = sum(square(w));
      ASSERT_EQ(grad(loss, w, {.retain_graph = true}).to_vector<float>(), (std::vector<float>{2, 4, 6}));
      loss.backward();
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(w.grad().to_vector<float>(), (std::vector<float>{800, 1600, 2400}));
}

TEST(Hooks, see_and_change_the_gradient) {
  Tensor x = tensor({1.0, 2.0}).set_requires_grad(true);
  Tensor y = x * 2.0;
  on_gradient(y, [](const Tensor& g) { return g * 10.0; });
  int calls = 0;
  on_gradient(x, [&](const Tensor&) { ++calls; return Tensor(); });
  sum(y + y).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{40, 40}));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tenon::test
