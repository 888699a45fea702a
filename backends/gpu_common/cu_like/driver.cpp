#include <tenon/caps.h>

#include <cstdio>
#include <cstring>

#include "backends/gpu_common/cu_like/device.h"

namespace tenon::gpu::cu_like {
namespace {

// "0000:65:00.0" to a domain and bus << 8 | device << 3 | function.
void parse_pci(const std::string& text, tn_device_info* info) {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  if (std::sscanf(text.c_str(), "%x:%x:%x.%x", &domain, &bus, &device, &function) < 3) return;
  info->pci_domain = domain;
  info->pci_bdf = bus << 8 | device << 3 | function;
}

void copy_text(char* to, size_t size, const std::string& text) { std::snprintf(to, size, "%s", text.c_str()); }

tn_cap number(uint32_t key, uint16_t provenance, double value) {
  tn_cap cap{key, TN_CAP_F64, provenance, {}};
  cap.v.f = value;
  return cap;
}

}  // namespace

tn_status CuDriver::start(const std::string& library, tn_diag* diag) {
  const int code = api_.init(0);
  int version = 0, count = 0;
  if (code != kGood) return flavor_.start_failed(code, library, diag);
  if (const int c = api_.device_count(&count); c != kGood) return flavor_.start_failed(c, library, diag);
  if (count <= 0) return flavor_.start_failed(kNoDevice, library, diag);
  api_.driver_version(&version);
  driver_text_ = std::string(flavor_.api_name) + " " + flavor_.version(version);
  if (api_.stand_in != nullptr) driver_text_ = std::string(api_.stand_in) + ": " + driver_text_;
  for (int i = 0; i < count; ++i) facts_.push_back(read_facts(api_, flavor_, i));
  return TN_OK;
}

void CuDriver::set_compiler(std::unique_ptr<Compiler> compiler) {
  compiler_ = std::move(compiler);
  driver_text_ += ", " + compiler_->version();
}

DeviceFacts CuDriver::describe(const Facts& f) const {
  DeviceFacts d;
  d.emulated = api_.stand_in != nullptr;
  d.gpu = f.caps;
  d.info.n_spaces = 2;  // the device's own, and pinned host memory that it can address
  d.info.kind = flavor_.kind;
  if (d.emulated) d.info.flags |= TN_DEVICE_EMULATED;
  if (f.integrated) d.info.flags |= TN_DEVICE_INTEGRATED;
  if (flavor_.uuid_is_shared) d.info.flags |= TN_DEVICE_UUID_TRUSTED;
  std::memcpy(d.info.uuid, f.uuid.bytes, sizeof d.info.uuid);
  parse_pci(f.pci, &d.info);
  d.info.vendor_id = flavor_.vendor_id;
  d.info.mem_total_bytes = f.memory_bytes;
  d.info.dtype_storage = f.caps.storage, d.info.dtype_compute = f.caps.arithmetic, d.info.dtype_matrix = f.caps.matrix;
  copy_text(d.info.name, sizeof d.info.name, f.name);
  copy_text(d.info.driver, sizeof d.info.driver, driver_text_);

  tn_cap architecture{TN_CAPKEY_ARCHITECTURE, TN_CAP_TEXT, TN_FROM_DRIVER, {}};
  architecture.v.s = f.architecture.c_str();
  d.caps.push_back(architecture);
  if (d.emulated) return d;  // the card's rates would be said of a processor
  const Rates rates = flavor_.rates(f.architecture);
  const double clocks = double(f.multiprocessors) * f.clock_khz * 1e3;
  if (f.memory_clock_khz != 0) d.caps.push_back(number(TN_CAPKEY_BANDWIDTH, TN_FROM_DRIVER, 2e3 * f.memory_clock_khz * (f.memory_bus_bits / 8.0)));
  if (clocks * rates.f32_per_clock != 0) d.caps.push_back(number(TN_CAPKEY_FLOPS_F32, TN_FROM_TABLE, 2 * clocks * rates.f32_per_clock));
  if (clocks * rates.f64_per_clock != 0) d.caps.push_back(number(TN_CAPKEY_FLOPS_F64, TN_FROM_TABLE, 2 * clocks * rates.f64_per_clock));
  d.caps.push_back(number(TN_CAPKEY_LAUNCH_NS, TN_FROM_GUESS, 4000));
  return d;
}

std::vector<DeviceFacts> CuDriver::enumerate() {
  std::vector<DeviceFacts> all;
  for (const Facts& f : facts_) all.push_back(describe(f));
  return all;
}

tn_status CuDriver::open_device(uint32_t index, std::unique_ptr<Device>* out, tn_diag* diag) {
  if (index >= facts_.size())
    return report(diag, TN_E_NOT_FOUND, kErrNoDevice, "%s:%u: no such device\nwhy: the driver lists %zu\ntry: take an index below that", flavor_.plugin, index, facts_.size());
  return CuDevice::open(api_, flavor_, *compiler_, facts_[index], driver_text_, out, diag);
}

}  // namespace tenon::gpu::cu_like
