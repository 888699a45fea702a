// backends/rocm/rocm.cpp - AMD's part of the shared host source: symbols, architectures, start.
#include <cctype>
#include <cstdlib>
#include <cstring>

#include "backends/gpu_common/cu_like/device.h"
#include "backends/gpu_common/cu_like/errors.h"
#include "backends/gpu_common/driver.h"
#include "backends/rocm/hiprtc.h"
#include "backends/rocm/tenon_hip_abi.h"

namespace tenon::gpu {
namespace {
using namespace cu_like;
using rocm::kAttributes;

constexpr Symbol kSymbols[] = {TENON_HIP_CALLS(CU_LIKE_SYMBOL, CU_LIKE_OPTIONAL)};

constexpr uint64_t bit(int dtype) { return uint64_t{1} << dtype; }
constexpr uint64_t kIntegers = bit(TN_U8) | bit(TN_I8) | bit(TN_U16) | bit(TN_I16) | bit(TN_U32) | bit(TN_I32) | bit(TN_U64) | bit(TN_I64);

// The one text of hipDeviceProp_t that begins with "gfx", after the device's name; where it stands depends on HIP's version.
std::string architecture(const Api& api, int device) {
  std::string properties(rocm::kPropertiesBytes, 0);
  if (api.device_properties == nullptr || api.device_properties(properties.data(), device) != kGood) return {};
  const size_t at = properties.find("gfx", rocm::kNameBytes);
  return at != std::string::npos ? std::string(properties.c_str() + at) : std::string();
}

// "gfx90a:xnack-" to 0x90a.
unsigned generation(const std::string& architecture) {
  return architecture.starts_with("gfx") ? static_cast<unsigned>(std::strtoul(architecture.c_str() + 3, nullptr, 16)) : 0;
}

bool has_mfma(unsigned gfx) { return gfx >= 0x908 && gfx < 0x1000; }
bool has_wmma(unsigned gfx) { return gfx >= 0x1100; }

Types types(const std::string& architecture) {
  const unsigned gfx = generation(architecture);
  Types t;
  t.arithmetic = bit(TN_BOOL) | kIntegers | bit(TN_F16) | bit(TN_F32) | bit(TN_F64);
  t.storage = bit(TN_BOOL) | kIntegers | bit(TN_F8E4M3) | bit(TN_F8E5M2) | bit(TN_F16) | bit(TN_BF16) | bit(TN_F32) | bit(TN_F64);
  if (has_mfma(gfx) || has_wmma(gfx)) t.matrix = bit(TN_F16) | bit(TN_BF16) | bit(TN_I8);
  if (has_mfma(gfx)) t.matrix |= bit(TN_F32) | (gfx >= 0x90a ? bit(TN_F64) : 0);
  return t;
}

// Of one compute unit, from the architectures' manuals.
Rates rates(const std::string& architecture) {
  const unsigned gfx = generation(architecture);
  if (gfx == 0x90a || (gfx >= 0x940 && gfx < 0x1000)) return {128, 64};
  if (gfx == 0x906 || gfx == 0x908) return {64, 32};
  if (gfx >= 0x1100) return {128, 4};
  return {64, 4};
}

std::string version(int number) { return std::to_string(number / 10000000) + "." + std::to_string(number / 100000 % 100); }

tn_status start_failed(int code, const std::string& library, tn_diag* diag) {
  const std::string said = "hipInit in " + library + " says " + std::to_string(code);
  if (code == kNoDevice || code == kInvalidDevice)  // without the kernel's driver hipInit says 101
    return fail_why(diag, TN_E_UNAVAILABLE, kErrNoDevice, "rocm: no device", said + ": no AMD GPU or no amdgpu driver", "run rocminfo; join the groups render and video");
  if (code == kInsufficientDriver) return fail_why(diag, TN_E_UNAVAILABLE, kErrNoStart, "rocm: the driver is too old", said, "update the amdgpu kernel driver");
  return fail_why(diag, TN_E_UNAVAILABLE, kErrNoStart, "rocm: the runtime does not start", said, "run rocminfo and look at the kernel's log");
}

// A launch counts its work-items in 32 bits per axis.
constexpr Flavor kRocm = {"rocm", "HIP", TN_KIND_HIP, 0x1002, Dialect::Hip, false, kAttributes, architecture, types, rates, version, start_failed, 0xFFFFFFFFu};

}  // namespace

const char* driver_name() { return "rocm"; }

tn_status make_driver(const tn_host* host, std::unique_ptr<Driver>* out, tn_diag* diag) {
  Library library;
  if (!library.open({"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}, setting(host, "rocm.libamdhip64")))
    return fail_why(diag, TN_E_UNAVAILABLE, kErrNoLibrary, "rocm: no HIP runtime", library.tried(), "install ROCm (Debian: libamdhip64-5; AMD: hip-runtime-amd)");
  Api api;
  if (tn_status s = bind(library, kSymbols, std::size(kSymbols), &api, "rocm", diag); s != TN_OK) return s;
  auto driver = std::make_unique<CuDriver>(kRocm, api);
  if (tn_status s = driver->start(library.path(), diag); s != TN_OK) return s;
  std::unique_ptr<Compiler> compiler;
  if (tn_status s = rocm::Hiprtc::open(host, library, &compiler, diag); s != TN_OK) return s;
  driver->set_compiler(std::move(compiler));
  *out = std::move(driver);
  return TN_OK;
}

}  // namespace tenon::gpu
