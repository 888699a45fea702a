// backends/gpu_common/cu_like/flavor.h - what CUDA and ROCm do each in their own way: names, architectures, the compiler.
#pragma once
#include <tenon/plugin.h>

#include <memory>
#include <string>
#include <vector>

#include "backends/gpu_common/cu_like/api.h"
#include "ops/gpu/caps.h"

namespace tenon::gpu::cu_like {

// From text to a binary that module_load takes. Threads: any, several at once.
class Compiler {
 public:
  virtual ~Compiler() = default;
  virtual std::string version() const = 0;  // "NVRTC 13.0"
  // The targets that compile() takes for this architecture: see Flavor::target. TN_E_UNAVAILABLE with the reason when none.
  virtual tn_status target(const std::string& architecture, std::string* out, tn_diag*) const = 0;
  // All options but the target; part of every cache key.
  virtual std::vector<std::string> options() const = 0;
  virtual tn_status compile(const std::string& name, const std::string& text, const std::string& target, std::string* binary, tn_diag*) const = 0;
};

// Masks of 1 << dtype, and rates of one multiprocessor per clock for the estimate of cost (0 = not known).
struct Types { uint64_t storage = 0, arithmetic = 0, matrix = 0; };
struct Rates { uint32_t f32_per_clock = 0, f64_per_clock = 0; };  // multiply-adds

struct Flavor {
  const char* plugin;          // "cuda", "rocm"
  const char* api_name;        // "CUDA", "HIP"
  uint32_t kind;               // TN_KIND_*
  uint32_t vendor_id;          // of PCI
  Dialect dialect;
  bool uuid_is_shared;         // other APIs report the same UUID for the same card
  Attributes attributes;
  std::string (*architecture)(const Api&, int device);
  Types (*types)(const std::string& architecture);
  Rates (*rates)(const std::string& architecture);
  std::string (*version)(int driver_version);
  // Errors of the driver's start, as TN_E_UNAVAILABLE with what to do about them.
  tn_status (*start_failed)(int code, const std::string& library, tn_diag*);
  // Work-items of a launch per axis must stay below this; 0 = only the number of groups is bounded.
  uint64_t most_items;
};

}  // namespace tenon::gpu::cu_like
