// TN-GRAD: gradients.
#include <tenon/tenon.hpp>

#include <thread>

#include "tests/errors/stage.h"
#include "tests/errors/tables.h"

namespace tenon::errors {
namespace {

Tensor leaf() { return tensor({1.f, 2.f}).set_requires_grad(true); }

struct SavesBetween : Function {
  Tensor forward(std::span<const Tensor> in) override {
    const Tensor temp = in[0] * 2.f;
    save(temp);
    save(in[0]);
    return temp * 3.f;
  }
  std::vector<Tensor> backward(const Tensor& g) override { return {g * 3.f * saved(0) / saved(1)}; }
};
struct GivesOne : Function {
  Tensor forward(std::span<const Tensor> in) override { return in[0] * in[1]; }
  std::vector<Tensor> backward(const Tensor& g) override { return {g}; }
};

// Another thread starts a sweep while this one is between two branches of the graph.
Said two_sweeps() {
  Tensor x = leaf();
  Tensor a = x * 2.f, b = x * 3.f;
  const Tensor loss = sum(a + b);
  Said other;
  const auto meddle = [&](const Tensor& g) {
    std::thread([&] {
      const Said s = thrown([&] { loss.backward({}, true); });
      if (!s.id.empty()) other = s;
    }).join();
    return g;
  };
  on_gradient(a, meddle);
  thrown([&] { loss.backward({}, true); });
  return other;
}

// Memory is used again, and its version counts the writes of all its tensors: what came before the case is taken off.
Said versions_from_one(Said s) {
  const std::string word = "version ";
  int64_t before = -1;
  for (size_t at = s.why.find(word); at != std::string::npos; at = s.why.find(word, at)) {
    at += word.size();
    size_t digits = 0;
    const int64_t version = std::stoll(s.why.substr(at), &digits);
    if (before < 0) before = version - 1;
    s.why.replace(at, digits, std::to_string(version - before));
  }
  return s;
}

}  // namespace

Table grad_cases() {
  return {
      {"TN-GRAD-001", "", [] { return versions_from_one(thrown([] { Tensor x = leaf(), y = sigmoid(x); y.detach().zero_(); sum(y).backward(); })); }},
      {"TN-GRAD-002", "", [] { return thrown([] { Tensor x = leaf(); const Tensor loss = sum(x * x); loss.backward(); loss.backward(); }); }},
      {"TN-GRAD-003", "", [] { return thrown([] { Tensor x = leaf(); x.add_(1); }); }},
      {"TN-GRAD-004", "", [] { return thrown([] { Tensor x = leaf(), y = x * x, v = y.reshape({2, 1}); v.mul_(2); }); }},
      {"TN-GRAD-005", "of backward", [] { return thrown([] { tensor({1.f}).backward(); }); }},
      {"TN-GRAD-005", "of a hook", [] { return thrown([] { on_gradient(tensor({1.f}), [](const Tensor& g) { return g; }); }); }},
      {"TN-GRAD-006", "", [] { return thrown([] { Tensor x = leaf(); grad(sum(apply<SavesBetween>({x})), x, {.create_graph = true}); }); }},
      {"TN-GRAD-007", "", [] { return versions_from_one(thrown([] { Tensor x = leaf(), y = x * x, v = y.reshape({2, 1}); y.mul_(2); sum(v * 2.f).backward(); })); }},
      {"TN-GRAD-008", "", two_sweeps},
      {"TN-GRAD-009", "", [] { return thrown([] { Tensor x = leaf(), y = leaf(); sum(apply<GivesOne>({x, y})).backward(); }); }},
      {"TN-GRAD-010", "", [] { return thrown([] { Tensor x = leaf(); (x * x).backward(zeros({3})); }); }},
      {"TN-GRAD-011", "", [] { return thrown([] { Tensor x = leaf(); (x * x).backward(); }); }},
      {"TN-GRAD-012", "", [] { return thrown([] { Tensor x = leaf(), y = leaf(); grad(sum(x * x), y); }); }},
      {"TN-GRAD-013", "of set_requires_grad", [] { return thrown([] { Tensor x = leaf(); (x * x).set_requires_grad(false); }); }},
      {"TN-GRAD-013", "of set_data", [] { return thrown([] { Tensor x = leaf(); (x * x).set_data(zeros({2})); }); }},
      {"TN-GRAD-014", "", [] { return thrown([] { tensor({1, 2}).set_requires_grad(true); }); }},
      {"TN-GRAD-015", "", [] { return thrown([] { Tensor x = leaf(); (x * x).set_grad(zeros({2})); }); }},
      {"TN-GRAD-050", "", [] {
         Stage s;
         tn_tensor *data = s.tensor("f32[3]"), *index = s.i64({0, 1}), *updates = s.tensor("f32[2]");
         return s.call(s.derive(s.op("scatter"), 4), {data, index, updates, data, data}, {integer(TN_KEY_AXIS, 0), integer(TN_KEY_MODE, TN_SCATTER_MUL)});
       }},
  };
}

}  // namespace tenon::errors
