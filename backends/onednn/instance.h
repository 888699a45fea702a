// backends/onednn/instance.h - the plugin's state in one runtime, and what every kernel row is made of.
//
// A kernel has two functions: supports (plain numbers, no allocation) and build (makes a Recipe, may throw). The rest -
// plan, cache, launch, retire, translation of exceptions - is the same for all and lives in instance.cpp.
#pragma once
#include <tenon/plugin.h>

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "backends/onednn/recipe.h"

// What this processor's oneDNN can do, found once in open().
struct tn_instance {
  const tn_host* host = nullptr;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  int threads = 1;
  bool bf16 = false, int8 = false;  // int8: exact products only (VNNI, AMX); older sets saturate in 16 bits
  // Rates of one thread, for estimates: GFLOP/s (GOP/s) and GB/s.
  double f32_rate = 8, bf16_rate = 0, int8_rate = 0, copy_rate = 10;

  std::shared_ptr<tenon::onednn::Recipe> find(const std::string& key);
  void keep(const std::shared_ptr<tenon::onednn::Recipe>&);
  void forget_unused();
  uint32_t live_plans = 0;  // under mutex
  std::mutex mutex;

 private:
  std::unordered_map<std::string, std::weak_ptr<tenon::onednn::Recipe>> recipes_;  // under mutex
};

namespace tenon::onednn {

using BuildFn = std::shared_ptr<Recipe> (*)(tn_instance&, const tn_op&);

// prepare and retire of every row. `row` is the kernel's place in the table.
tn_status prepare_plan(tn_instance*, const tn_op&, uint32_t row, BuildFn, const tn_kernel_plan** out, tn_diag*);
void retire_plan(tn_instance*, const tn_device_ref*, const tn_kernel_plan*);

// Everything the recipe depends on: op, attributes, programs, dtypes, dims, strides.
std::string recipe_key(const tn_op&);

// Nanoseconds of `flops` at `rate` GFLOP/s or `bytes` at the copy rate, whichever is longer, spread over `threads`.
double estimate_ns(const tn_instance&, double flops, double rate, double bytes, int threads);
// Threads worth using: 1 while the whole takes less than waking the pool is worth.
int useful_threads(const tn_instance&, double single_thread_ns);
void fill_support(tn_support* out, double est_ns, double flops, double bytes);

inline constexpr double kCallNs = 400;    // one launch with one primitive, no work
inline constexpr double kWakeNs = 6000;   // handing shards to the pool and collecting them

}  // namespace tenon::onednn
