// backends/opencl/driver.cpp - the backend's entry: opens libOpenCL.so.1 and lists the devices of all its platforms.
#include "backends/opencl/device.h"

namespace tenon::gpu {
namespace {

using namespace opencl;

class ClDriver final : public Driver {
 public:
  ClDriver(const Api& api, std::vector<std::unique_ptr<DeviceOf>> devices) : api_(api), devices_(std::move(devices)) {}
  uint32_t native_kind() const override { return TN_KIND_OPENCL; }
  std::vector<DeviceFacts> enumerate() override {
    std::vector<DeviceFacts> all;
    for (const auto& d : devices_) all.push_back(d->facts);
    return all;
  }
  tn_status open_device(uint32_t index, std::unique_ptr<Device>* out, tn_diag* diag) override {
    if (index >= devices_.size()) return report(diag, TN_E_NOT_FOUND, kErrNoDriver, "opencl:%u: no such device\nwhy: there are %zu\ntry: take an index below that", index, devices_.size());
    return ClDevice::open(api_, *devices_[index], out, diag);
  }

 private:
  const Api& api_;
  const std::vector<std::unique_ptr<DeviceOf>> devices_;
};

// Drivers' threads and objects of the core may outlive the driver object: the table of the library's calls stays.
Api& table() {
  static Api api;
  return api;
}

void log(const tn_host* host, const std::string& line) {
  if (host->log != nullptr) host->log(host->ctx, TN_LOG_WARN, line.data(), static_cast<uint32_t>(line.size()));
}

}  // namespace

const char* driver_name() { return "opencl"; }

tn_status make_driver(const tn_host* host, std::unique_ptr<Driver>* out, tn_diag* diag) {
  const char* path = host->config != nullptr ? host->config(host->ctx, "opencl.library") : nullptr;
  Api& api = table();
  if (tn_status s = open_library(path, &api, diag); s != TN_OK) return s;
  std::vector<std::string> skipped;
  auto devices = find_devices(api, &skipped);
  for (const std::string& line : skipped) log(host, "opencl: left out: " + line);
  if (devices.empty())
    return report(diag, TN_E_UNAVAILABLE, kErrNoDriver, "opencl: no device\nwhy: %.100s\ntry: install the GPU's OpenCL driver, or sudo apt install pocl-opencl-icd",
                skipped.empty() ? "/etc/OpenCL/vendors names no driver that offers one" : skipped[0].c_str());
  *out = std::make_unique<ClDriver>(api, std::move(devices));
  return TN_OK;
}

}  // namespace tenon::gpu
