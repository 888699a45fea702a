// What a device reaches: bandwidth, multiply-add and matrix rates by element type, its link to the host.
#include "tools/tenon/look/measure.h"

#include <tenon/caps.h>
#include <tenon/ops.h>
#include <tenon/tenon.hpp>

#include <algorithm>
#include <cstring>
#include <functional>

#include "tools/bench/sampler.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/names.h"

namespace tenon::cli {
namespace {

using bench::Sampler;

double median_ns(Sampler sampler, int samples = 7) {
  std::vector<double> ns;
  for (int k = 0; k < samples; ++k) ns.push_back(sampler.sample());
  std::nth_element(ns.begin(), ns.begin() + samples / 2, ns.end());
  return ns[static_cast<size_t>(samples) / 2];
}

Sampler calls(const Device& device, std::function<Tensor()> op) {
  return Sampler([=](int64_t n) {
    const NoGrad off;
    Tensor y;
    for (; n > 0; --n) {
      y = Tensor();  // its memory is free for the next result
      y = op();
    }
    device.synchronize();
  });
}

// Bytes a second, reading and writing together; larger than the caches where memory allows.
double copy_rate(const Device& device, uint64_t memory_bytes) {
  const int64_t bytes = std::clamp<int64_t>(static_cast<int64_t>(memory_bytes / 16), 1 << 20, 256 << 20);
  const Tensor x = zeros({bytes / 4}, {.device = device});
  return 2e9 * static_cast<double>(bytes) / median_ns(calls(device, [=] { return x.clone(); }));
}

struct Link { double to_device, to_host, round_trip_ns; };
Link link_rates(const Device& device) {
  constexpr int64_t kBytes = 32 << 20;
  std::vector<float> host(kBytes / 4);
  Tensor large = zeros({kBytes / 4}, {.device = device}), small = zeros({1}, {.device = device});
  const auto rate = [&](std::function<void()> copy) {
    return 1e9 * kBytes / median_ns(Sampler([&](int64_t n) {
      for (; n > 0; --n) copy();
      device.synchronize();
    }));
  };
  float value = 0;
  return {rate([&] { large.write(host.data(), kBytes); }), rate([&] { large.read(host.data(), kBytes); }), median_ns(Sampler([&](int64_t n) {
            for (; n > 0; --n) small.write(&value, 4), small.read(&value, 4);
          }))};
}

// The largest product that takes no longer than some 50 ms, up to 2048: reference kernels are a thousand times slower.
double matmul_rate(const Device& device, DType left, DType right) {
  double rate = 0;
  for (int64_t n = 64; n <= 2048; n *= 2) {
    const Tensor a = ones({n, n}, {.dtype = left, .device = device}), b = ones({n, n}, {.dtype = right, .device = device});
    const double flops = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    const double ns = median_ns(calls(device, [=] { return matmul(a, b); }), n < 1024 ? 3 : 7);
    rate = flops * 1e9 / ns;
    if (ns > 6e6) break;
  }
  return rate;
}

// 60 dependent multiply-adds an element, over a tensor that stays in the caches: t = t * a + b.
class MultiplyAdds {
 public:
  MultiplyAdds(const Device& device, DType type) : device_(device), x_(ones({kElements}, {.dtype = type, .device = device})) {
    const auto dtype = static_cast<uint8_t>(type);
    for (uint8_t slot = 0; slot < 3; ++slot) inst_.push_back({slot ? TN_OP_CONST : TN_OP_INPUT, dtype, uint16_t(slot ? slot - 1 : 0), 0, 0});
    for (int k = 0; k < kAdds; ++k) inst_.push_back({TN_OP_FMA, dtype, uint16_t(k ? inst_.size() - 1 : 0), 1, 2});
    tn_program program{};
    program.size = sizeof program;
    program.n_inst = static_cast<uint16_t>(inst_.size()), program.n_in = 1, program.n_out = 1, program.n_slots = 2;
    program.out[0] = static_cast<uint16_t>(inst_.size() - 1);
    program.inst = inst_.data();
    tn_attr with{TN_KEY_PROGRAM, TN_ATTR_PROGRAM, {}, 1};
    with.v.p = &program;
    tn_diag diag{};
    diag.size = sizeof diag;
    if (tn_status s = tn_op_find(device.runtime(), "pointwise", 0, &op_, &diag)) throw_diag(diag, s);
    if (tn_status s = tn_attr_intern(device.runtime(), op_, &with, 1, &attr_, &diag)) throw_diag(diag, s);
    if (tn_status s = tn_queue_get(device.runtime(), device.id(), &queue_, &diag)) throw_diag(diag, s);
  }
  double rate() {
    return 2e9 * kAdds * kElements / median_ns(Sampler([&](int64_t n) {
      for (; n > 0; --n) call();
      device_.synchronize();
    }));
  }

 private:
  static constexpr int64_t kElements = 1 << 18;
  static constexpr int kAdds = 60;
  void call() {
    uint64_t push[2] = {};  // zeros: no value grows
    tn_tensor *in[] = {x_.handle()}, *out[] = {nullptr};
    const tn_call_args args{op_, attr_, TN_CALL_REQUIRE | TN_CALL_NO_EXPAND, sizeof push, 1, 1, in, out, push};
    tn_diag d{};
    d.size = sizeof d;
    if (tn_status s = tn_call(queue_, &args, &d)) throw_diag(d, s);
    tn_tensor_release(out[0]);
  }
  Device device_;
  Tensor x_;
  std::vector<tn_inst> inst_;
  uint32_t op_ = 0, attr_ = 0;
  tn_queue* queue_ = nullptr;
};

double launch_ns(const Device& device) {
  const Tensor a = zeros({16}, {.device = device});
  return median_ns(calls(device, [=] { return add(a, a); }));
}

}  // namespace

Measured measure(const Device& device) {
  Measured out;
  const auto keep = [&](uint32_t key, double value) {
    tn_cap cap{key, TN_CAP_F64, TN_FROM_MEASURED, {}};
    cap.v.f = value;
    out.caps.push_back(cap);
  };
  const auto try_it = [&](uint32_t key, const std::function<double()>& rate) {
    try {
      keep(key, rate());
    } catch (const Error& e) {
      tn_cap cap{key, TN_CAP_F64, TN_FROM_MEASURED, {}};
      out.left_out.push_back(cap_text(cap).key + ": " + e.what());
    }
  };
  uint64_t memory = 0;
  for (const tn_device_entry& d : device_entries(device.runtime()))
    if (d.device == device.id()) memory = d.info.mem_total_bytes;
  try_it(TN_CAPKEY_BANDWIDTH, [&] { return copy_rate(device, memory); });
  try_it(TN_CAPKEY_FLOPS_F32, [&] { return MultiplyAdds(device, f32).rate(); });
  try_it(TN_CAPKEY_FLOPS_F64, [&] { return MultiplyAdds(device, f64).rate(); });
  constexpr struct { uint32_t key; DType left, right; } kProducts[] = {{TN_CAPKEY_MATMUL_F32, f32, f32}, {TN_CAPKEY_MATMUL_F64, f64, f64},
      {TN_CAPKEY_MATMUL_F16, f16, f16}, {TN_CAPKEY_MATMUL_BF16, bf16, bf16}, {TN_CAPKEY_MATMUL_U8S8, u8, i8}};
  for (const auto& p : kProducts) try_it(p.key, [&] { return matmul_rate(device, p.left, p.right); });
  try_it(TN_CAPKEY_LAUNCH_NS, [&] { return launch_ns(device); });
  const Link link = link_rates(device);
  keep(TN_CAPKEY_LINK_TO_DEVICE, link.to_device), keep(TN_CAPKEY_LINK_TO_HOST, link.to_host), keep(TN_CAPKEY_LINK_NS, link.round_trip_ns);
  return out;
}

}  // namespace tenon::cli
