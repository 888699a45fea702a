// Work that the memory bounds, on one thread.
#include <tenon/ops.h>
#include <tenon/tenon.hpp>

#include <cstring>
#include <memory>

#include "tools/tenon/bench/bench.h"

namespace tenon::cli {
namespace {

using bench::Sampler;

// t = x * 1.5 + 0.25;  s = t * (1 / (exp(t) + 1));  y = min(max(|s - 0.5|, 0.01), 4): ten operations, as in
// tools/bench/handfused.cpp. Constants travel in push slots.
constexpr tn_inst kChain[] = {
    {TN_OP_INPUT, TN_F32, 0, 0, 0}, {TN_OP_CONST, TN_F32, 0, 0, 0}, {TN_OP_CONST, TN_F32, 1, 0, 0}, {TN_OP_CONST, TN_F32, 2, 0, 0},
    {TN_OP_CONST, TN_F32, 3, 0, 0}, {TN_OP_CONST, TN_F32, 4, 0, 0}, {TN_OP_CONST, TN_F32, 5, 0, 0},
    {TN_OP_MUL, TN_F32, 0, 1, 0},   {TN_OP_ADD, TN_F32, 7, 2, 0},   {TN_OP_EXP, TN_F32, 8, 0, 0},   {TN_OP_ADD, TN_F32, 9, 3, 0},
    {TN_OP_DIV, TN_F32, 3, 10, 0},  {TN_OP_MUL, TN_F32, 8, 11, 0},  {TN_OP_SUB, TN_F32, 12, 4, 0},  {TN_OP_ABS, TN_F32, 13, 0, 0},
    {TN_OP_MAX, TN_F32, 14, 5, 0},  {TN_OP_MIN, TN_F32, 15, 6, 0}};
constexpr float kConstants[] = {1.5f, 0.25f, 1.0f, 0.5f, 0.01f, 4.0f};

Sampler chain10() {
  const Device device = default_device();
  tn_diag diag{};
  diag.size = sizeof diag;
  uint32_t op = 0, attr = 0;
  tn_queue* queue = nullptr;
  tn_program program{};
  program.size = sizeof program;
  program.n_inst = std::size(kChain), program.n_in = 1, program.n_out = 1, program.n_slots = std::size(kConstants);
  program.out[0] = std::size(kChain) - 1;
  program.inst = kChain;
  tn_attr with{TN_KEY_PROGRAM, TN_ATTR_PROGRAM, {}, 1};
  with.v.p = &program;
  if (tn_status s = tn_op_find(device.runtime(), "pointwise", 0, &op, &diag)) throw_diag(diag, s);
  if (tn_status s = tn_attr_intern(device.runtime(), op, &with, 1, &attr, &diag)) throw_diag(diag, s);
  if (tn_status s = tn_queue_get(device.runtime(), device.id(), &queue, &diag)) throw_diag(diag, s);
  const Tensor x = randn({int64_t{8} << 20});
  return Sampler([=](int64_t calls) {
    uint64_t push[std::size(kConstants)] = {};
    for (size_t k = 0; k < std::size(kConstants); ++k) std::memcpy(&push[k], &kConstants[k], sizeof(float));
    tn_tensor* in[] = {x.handle()};
    for (; calls > 0; --calls) {
      tn_tensor* out[] = {nullptr};
      const tn_call_args args{op, attr, 0, sizeof push, 1, 1, in, out, push};
      tn_diag d{};
      d.size = sizeof d;
      if (tn_status s = tn_call(queue, &args, &d)) throw_diag(d, s);
      tn_tensor_release(out[0]);
    }
    x.device().synchronize();
  });
}

Sampler rows(const std::function<Tensor(const Tensor&)>& op) {
  const Tensor x = randn({4096, 4096});
  return Sampler([=](int64_t calls) {
    const NoGrad off;
    Tensor y;
    for (; calls > 0; --calls) {
      y = Tensor();  // its memory is free for the next result
      y = op(x);
    }
    x.device().synchronize();
  });
}

Sampler normalise() {
  const Tensor scale = ones({4096}), bias = zeros({4096});
  return rows([=](const Tensor& x) { return layer_norm(x, scale, bias); });
}

}  // namespace

void bench_elementwise(Bench& bench) {
  bench.use_threads(1);
  bench.run({.name = "pointwise.chain10", .unit = "ms", .tenon = chain10, .rivals = {"handfused", "memcpy"}});
  bench.run({.name = "softmax.4096", .unit = "ms", .tenon = [] { return rows([](const Tensor& x) { return softmax(x); }); }, .rivals = {"onednn", "memcpy"}});
  bench.run({.name = "layernorm.4096", .unit = "ms", .tenon = normalise, .rivals = {"onednn", "memcpy"}});
}

}  // namespace tenon::cli
