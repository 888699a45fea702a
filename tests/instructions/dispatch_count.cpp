// dispatch_count PLUGIN_FOLDER CASE=WARM+COUNTED...: runs cases of the cost of small ops, each so many times, and prints how many
// ops the counted iterations were. gate.py counts their instructions; the cases are those of `tenon bench dispatch`.
#include <tenon/tenon.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

// gate.py has callgrind begin a new part of its count at each call. Not inline, and with an effect, so that the calls stay.
extern "C" __attribute__((noinline)) void tenon_next_part() { asm volatile("" ::: "memory"); }

namespace {

using namespace tenon;

struct Iterations {
  int64_t warm;     // enough for every table and pool to have settled
  int64_t counted;
};

// The two loops hold nothing but the body: what a case prepares and takes down again is in other parts.
template <typename Body>
inline void repeat(const Iterations& n, Body body) {
  for (int64_t k = 0; k < n.warm; ++k) body();
  tenon_next_part();
  for (int64_t k = 0; k < n.counted; ++k) body();
  tenon_next_part();
}

constexpr char kPlugin[] = "dev.tenon.cpu-kernels";

void check(tn_status status, const tn_diag& diag) {
  if (status != TN_OK) throw std::runtime_error(diag.msg);
}

int64_t add16(const Iterations& iterations, bool recording) {
  Tensor a = rand({16}), b = rand({16}), y;
  if (recording) a.set_requires_grad(true);
  const bool before = set_grad_enabled(recording);
  repeat(iterations, [&] { y = add(a, b); });
  set_grad_enabled(before);
  return iterations.counted;
}

// 64 shapes x 8 ops, one after another: every call finds another plan than the one before.
int64_t rotate(const Iterations& iterations) {
  using Op = Tensor (*)(const Tensor&, const Tensor&, Where);
  constexpr Op kOps[] = {add, sub, mul, div, maximum, minimum, less, equal};
  std::vector<Tensor> operands;
  for (int64_t k = 0; k < 64; ++k) operands.push_back(k % 2 ? full({k / 2 + 1}, 0.5) : full({2, k / 2 + 1}, 0.5));
  const NoGrad off;
  Tensor y;
  repeat(iterations, [&] {
    for (const Tensor& x : operands)
      for (Op op : kOps) y = op(x, x, here());
  });
  return iterations.counted * static_cast<int64_t>(operands.size() * std::size(kOps));
}

// A prepared plan, launched through the C functions into an output that is there.
int64_t launch(const Iterations& iterations) {
  const Tensor a = rand({16}), b = rand({16}), y = empty({16});
  const Device device = default_device();
  const uint32_t types[] = {a.type_id(), b.type_id()};
  tn_diag diag{sizeof diag};
  uint32_t op = 0;
  tn_plan* plan = nullptr;
  tn_queue* queue = nullptr;
  check(tn_op_find(device.runtime(), "add", 0, &op, &diag), diag);
  const tn_spec spec{op, 0, device.id(), 0, 2, 0, types};
  check(tn_plan_prepare(device.runtime(), &spec, &plan, &diag), diag);
  check(tn_queue_get(device.runtime(), device.id(), &queue, &diag), diag);
  tn_tensor* in[] = {a.handle(), b.handle()};
  tn_tensor* out[] = {y.handle()};
  const tn_call_args args{0, 0, 0, 0, 2, 1, in, out, nullptr};
  repeat(iterations, [&] { check(tn_plan_launch(queue, plan, &args, &diag), diag); });
  tn_plan_release(plan);
  return iterations.counted;
}

// Forward and backward of a chain of 50 adds and multiplications; an op is one of the 50 with its share of the backward pass.
int64_t chain50(const Iterations& iterations) {
  Tensor x = rand({16});
  const Tensor w = rand({16}), seed = ones({16});
  x.set_requires_grad(true);
  repeat(iterations, [&] {
    Tensor y = x;
    for (int pair = 0; pair < 25; ++pair) y = mul(add(y, w), w);
    const Tensor outputs[] = {y}, inputs[] = {x}, seeds[] = {seed};
    grad(outputs, inputs, seeds);
  });
  return iterations.counted * 50;
}

// Without them the reference kernels would be counted.
void require_cpu_kernels() {
  tn_diag diag{sizeof diag};
  uint32_t n = 0;
  std::vector<tn_plugin_entry> plugins(16);
  for (tn_plugin_entry& p : plugins) p.size = sizeof p;
  check(tn_plugins(default_runtime().get(), plugins.data(), sizeof plugins[0], 16, &n, &diag), diag);
  for (uint32_t k = 0; k < n && k < 16; ++k)
    if (std::strcmp(plugins[k].id, kPlugin) == 0 && plugins[k].code == 0) return;
  throw std::runtime_error(std::string(kPlugin) + " is not in use\nwhy: the folder given lacks it\ntry: build tenon_backend_cpu");
}

int64_t run(const std::string& name, const Iterations& iterations) {
  if (name == "add16.nograd") return add16(iterations, false);
  if (name == "add16.grad") return add16(iterations, true);
  if (name == "rotate") return rotate(iterations);
  if (name == "launch") return launch(iterations);
  if (name == "chain50.fwdbwd") return chain50(iterations);
  std::fprintf(stderr, "dispatch_count: unknown case %s\ntry: one of add16.nograd, add16.grad, rotate, launch, chain50.fwdbwd\n",
               name.c_str());
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::fprintf(stderr, "usage: dispatch_count PLUGIN_FOLDER CASE=WARM+COUNTED...\n");
    return 2;
  }
  // One thread: what a pool's other threads do while they wait would be counted too.
  set_default_runtime(Runtime({.paths = {argv[1]}, .allow = {kPlugin}, .threads = 1}));
  set_default_device(default_runtime().device("cpu:0"));
  require_cpu_kernels();
  for (int k = 2; k < argc; ++k) {
    const std::string text = argv[k], name = text.substr(0, text.find('='));
    char* end = nullptr;
    Iterations iterations{};
    iterations.warm = std::strtoll(text.c_str() + std::min(name.size() + 1, text.size()), &end, 10);
    if (*end == '+') iterations.counted = std::strtoll(end + 1, nullptr, 10);
    std::printf("ops %s %lld\n", name.c_str(), static_cast<long long>(run(name, iterations)));
  }
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "dispatch_count: %s\n", e.what());
  return 1;
}
