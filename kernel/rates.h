// kernel/rates.h - how fast a device is: figures that estimates go by where a kernel gives none, and the way to the host.
//
// Of each figure the best that is known: measured before what the driver says, before a table, before a guess. Read when the
// device is opened and constant from then on, so that no choice changes by itself. Immutable afterwards: any thread.
#pragma once
#include <tenon/runtime.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tenon::kernel {

struct Device;
class Runtime;

// What somebody measured on a device and kept.
struct KeptRates {
  bool read = false;
  uint32_t state = TN_RATES_NONE;
  std::string when, path, note;  // see tn_rates_info
  std::string made_for;          // hardware, driver and builds that they hold for
  std::vector<tn_cap> caps;      // TN_FROM_MEASURED
};

// Where they are kept: the loader knows a place. Threads: one device each.
class RateStore {
 public:
  virtual ~RateStore() = default;
  virtual void read(const Device& device, KeptRates* out) = 0;  // never fails: `state` and `note` say what became of it
  virtual tn_status keep(const Device& device, std::span<const tn_cap> caps, tn_diag* diag) = 0;
};

struct Rate {
  double value = 0;  // operations or bytes a ns; ns for a latency
  uint32_t provenance = TN_FROM_GUESS;
};

// Kinds of arithmetic that have a rate of their own.
enum class Work : uint8_t { FmaF32, FmaF64, MatmulF32, MatmulF64, MatmulF16, MatmulBf16, MatmulU8S8 };
Work work_of(const tn_op_def& def, const tn_op& op);

struct DeviceRates {
  std::array<Rate, 7> arithmetic{};  // by Work
  Rate memory;                       // reading and writing together
  Rate to_device, to_host, link_ns;  // of the link to the host; link_ns: 4 bytes there and back
  DeviceRates() : DeviceRates({}, {}) {}
  DeviceRates(std::span<const tn_cap> stated, std::span<const tn_cap> kept);
  const Rate& of(Work work) const { return arithmetic[static_cast<size_t>(work)]; }
};

struct Estimate {
  double ns = 0;
  uint32_t provenance = TN_FROM_GUESS;  // of the figure that decided
};
Estimate estimate(const DeviceRates& rates, Work work, double flops, double bytes);

// Moving operands between two devices, through the host where neither is the host itself.
double transfer_ns(const Device& from, const Device& to, double bytes);

// Reads what is kept, once in the life of the device, and sets its rates.
void take_rates(Device* device);

}  // namespace tenon::kernel
