#include "kernel/rates.h"

#include <tenon/caps.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernel/guard.h"
#include "kernel/runtime.h"
#include "kernel/status.h"

namespace tenon::kernel {
namespace {

constexpr double kGuessPerNs = 8;         // GFLOP/s and GB/s where nothing is known
constexpr double kGuessLinkNs = 20000;    // there and back
constexpr double kLaunchNs = 20;
constexpr uint32_t kArithmeticKeys[] = {TN_CAPKEY_FLOPS_F32, TN_CAPKEY_FLOPS_F64, TN_CAPKEY_MATMUL_F32, TN_CAPKEY_MATMUL_F64,
                                        TN_CAPKEY_MATMUL_F16, TN_CAPKEY_MATMUL_BF16, TN_CAPKEY_MATMUL_U8S8};

double number_of(const tn_cap& cap) {
  switch (cap.type) {
    case TN_CAP_F64: return cap.v.f;
    case TN_CAP_U64: return static_cast<double>(cap.v.u);
    case TN_CAP_I64: return static_cast<double>(cap.v.i);
    default: return 0;
  }
}

// The figure of best provenance; of two alike the first. What is no rate (0, negative, NaN) is not there.
Rate best(std::span<const tn_cap> stated, std::span<const tn_cap> kept, uint32_t key, double unit, Rate otherwise) {
  Rate found{0, UINT32_MAX};
  for (std::span<const tn_cap> list : {stated, kept})
    for (const tn_cap& cap : list) {
      const double value = number_of(cap);
      if (cap.key == key && cap.provenance && cap.provenance < found.provenance && std::isfinite(value) && value > 0) found = {value * unit, cap.provenance};
    }
  return found.provenance == UINT32_MAX ? otherwise : found;
}

// A figure of other work is no more than a guess about this.
Rate guessed_from(const Rate& other) { return {other.value, TN_FROM_GUESS}; }

bool is_host(const Device& d) { return d.inline_work && d.info.kind == TN_KIND_CPU; }

}  // namespace

DeviceRates::DeviceRates(std::span<const tn_cap> stated, std::span<const tn_cap> kept) {
  const Rate guess{kGuessPerNs, TN_FROM_GUESS};
  const auto per_second = [&](uint32_t key, const Rate& otherwise) { return best(stated, kept, key, 1e-9, otherwise); };
  const auto set = [&](Work work, const Rate& otherwise) { return arithmetic[static_cast<size_t>(work)] = per_second(kArithmeticKeys[static_cast<size_t>(work)], otherwise); };
  const Rate f32 = set(Work::FmaF32, guess), f64 = set(Work::FmaF64, guessed_from(f32));
  const Rate product = set(Work::MatmulF32, guessed_from(f32));
  set(Work::MatmulF64, guessed_from(f64));
  for (Work w : {Work::MatmulF16, Work::MatmulBf16, Work::MatmulU8S8}) set(w, guessed_from(product));
  memory = per_second(TN_CAPKEY_BANDWIDTH, guess);
  to_device = per_second(TN_CAPKEY_LINK_TO_DEVICE, guess);
  to_host = per_second(TN_CAPKEY_LINK_TO_HOST, guess);
  link_ns = best(stated, kept, TN_CAPKEY_LINK_NS, 1, {kGuessLinkNs, TN_FROM_GUESS});
}

Work work_of(const tn_op_def& def, const tn_op& op) {
  const uint32_t first = op.n_in ? op.type[0].dtype : 0;
  if (!(def.flags & TN_DEF_MATMUL)) {
    const bool wide = std::any_of(op.type, op.type + op.n_in + op.n_out, [](const tn_type& t) { return t.dtype == TN_F64 || t.dtype == TN_C128; });
    return wide ? Work::FmaF64 : Work::FmaF32;
  }
  switch (first) {
    case TN_F64: return Work::MatmulF64;
    case TN_F16: return Work::MatmulF16;
    case TN_BF16: return Work::MatmulBf16;
    case TN_U8: case TN_I8: return Work::MatmulU8S8;
    default: return Work::MatmulF32;
  }
}

Estimate estimate(const DeviceRates& rates, Work work, double flops, double bytes) {
  const Rate& arithmetic = rates.of(work);
  const double computing = flops / arithmetic.value, moving = bytes / rates.memory.value;
  return {kLaunchNs + std::max(computing, moving), computing > moving ? arithmetic.provenance : rates.memory.provenance};
}

double transfer_ns(const Device& from, const Device& to, double bytes) {
  if (&from == &to) return 0;
  double ns = 0;
  if (!is_host(from)) ns += from.rates.link_ns.value / 2 + bytes / from.rates.to_host.value;
  if (!is_host(to)) ns += to.rates.link_ns.value / 2 + bytes / to.rates.to_device.value;
  if (is_host(from) && is_host(to)) ns += 2 * bytes / std::min(from.rates.memory.value, to.rates.memory.value);
  return ns;
}

void take_rates(Device* device) {
  KeptRates& kept = device->kept;
  if (!kept.read && device->runtime->rate_store) device->runtime->rate_store->read(*device, &kept);
  kept.read = true;
  device->rates = DeviceRates(device->caps, kept.caps);
}

}  // namespace tenon::kernel

using namespace tenon::kernel;

namespace {

tn_status open_device(tn_runtime* rt, uint32_t device, Device** out, tn_diag* diag) {
  *out = rt->core.device(device);
  if (!*out) return fail(diag, TN_E_NOT_FOUND, id(kDevice, 2), "no such device\nwhy: id %u is not in the device list\ntry: use ids from tn_devices", device);
  return (*out)->open(diag);
}

template <size_t N>
void put(char (&out)[N], const std::string& text) {
  std::snprintf(out, N, "%s", text.c_str());
}

}  // namespace

extern "C" {

tn_status tn_rates(tn_runtime* rt, uint32_t device, tn_rates_info* out, tn_diag* diag) {
  return guarded(diag, [&] {
    Device* d = nullptr;
    if (tn_status s = open_device(rt, device, &d, diag)) return s;
    tn_rates_info info{};
    const uint32_t room = out->size ? std::min<uint32_t>(out->size, sizeof info) : uint32_t{sizeof info};
    info.size = room;
    info.device = device;
    info.state = d->kept.state;
    info.n_caps = static_cast<uint32_t>(d->kept.caps.size());
    put(info.when, d->kept.when);
    put(info.path, d->kept.path);
    put(info.note, d->kept.note);
    std::memcpy(out, &info, room);
    return tn_status{TN_OK};
  });
}

tn_status tn_rates_keep(tn_runtime* rt, uint32_t device, const tn_cap* caps, uint32_t n, tn_diag* diag) {
  return guarded(diag, [&] {
    Device* d = nullptr;
    if (tn_status s = open_device(rt, device, &d, diag)) return s;
    for (uint32_t i = 0; i < n; ++i)
      if (caps[i].type != TN_CAP_F64 || !std::isfinite(caps[i].v.f) || caps[i].v.f <= 0)
        return fail(diag, TN_E_ARG, id(kArg, 240), "rate %u is no rate\nwhy: capability %u has type %u and value %g; a finite number above 0 of type %u is wanted\ntry: leave out what could not be measured",
                    i, caps[i].key, caps[i].type, caps[i].type == TN_CAP_F64 ? caps[i].v.f : 0.0, TN_CAP_F64);
    if (d->kept.path.empty() || !rt->core.rate_store)
      return fail(diag, TN_E_STATE, id(kState, 30), "measured rates cannot be kept\nwhy: this runtime has no cache folder; XDG_CACHE_HOME, HOME, cache_dir and loader.cache name none\ntry: export HOME=/some/folder");
    return rt->core.rate_store->keep(*d, {caps, n}, diag);
  });
}

}  // extern "C"
