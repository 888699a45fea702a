// backends/cuda/cuda.cpp - NVIDIA's part of the shared host source: symbols, architectures, start.
#include "backends/cuda/nvrtc.h"
#include "backends/cuda/tenon_cuda_abi.h"
#include "backends/gpu_common/cu_like/device.h"
#include "backends/gpu_common/cu_like/errors.h"
#include "backends/gpu_common/driver.h"

namespace tenon::gpu {
namespace {
using namespace cu_like;
using cuda::kAttributes;

constexpr Symbol kSymbols[] = {TENON_CUDA_CALLS(CU_LIKE_SYMBOL, CU_LIKE_OPTIONAL)};

constexpr uint64_t bit(int dtype) { return uint64_t{1} << dtype; }
constexpr uint64_t kIntegers = bit(TN_U8) | bit(TN_I8) | bit(TN_U16) | bit(TN_I16) | bit(TN_U32) | bit(TN_I32) | bit(TN_U64) | bit(TN_I64);

int capability(const std::string& architecture) { return std::atoi(architecture.c_str() + 3); }

std::string architecture(const Api& api, int device) {
  int major = 0, minor = 0;
  api.device_attribute(&major, kAttributes.major, device);
  api.device_attribute(&minor, kAttributes.minor, device);
  return "sm_" + std::to_string(major * 10 + minor);
}

Types types(const std::string& architecture) {
  const int sm = capability(architecture);
  Types t;
  t.arithmetic = bit(TN_BOOL) | kIntegers | bit(TN_F32) | bit(TN_F64) | (sm >= 53 ? bit(TN_F16) : 0) | (sm >= 80 ? bit(TN_BF16) : 0);
  t.storage = bit(TN_BOOL) | kIntegers | bit(TN_F8E4M3) | bit(TN_F8E5M2) | bit(TN_F16) | bit(TN_BF16) | bit(TN_F32) | bit(TN_F64);
  t.matrix = (sm >= 70 ? bit(TN_F16) : 0) | (sm >= 72 ? bit(TN_I8) | bit(TN_U8) : 0) | (sm >= 80 ? bit(TN_BF16) | bit(TN_F64) : 0) |
             (sm >= 89 ? bit(TN_F8E4M3) | bit(TN_F8E5M2) : 0);
  return t;
}

// From the table of arithmetic instructions in the programming guide.
Rates rates(const std::string& architecture) {
  switch (capability(architecture)) {
    case 60: return {64, 32};
    case 70: return {64, 32};
    case 75: return {64, 2};
    case 80: return {64, 32};
    case 90: case 100: return {128, 64};
    default: return {128, 2};
  }
}

std::string version(int number) { return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10); }

tn_status start_failed(int code, const std::string& library, tn_diag* diag) {
  const auto refuse = [&](uint32_t id, const char* what, const std::string& why, const char* advice) { return fail_why(diag, TN_E_UNAVAILABLE, id, what, why, advice); };
  const std::string said = "cuInit in " + library + " says " + std::to_string(code);
  switch (code) {
    case kNoDevice: return refuse(kErrNoDevice, "cuda: no device", said + ": no NVIDIA GPU is visible", "run nvidia-smi; look at CUDA_VISIBLE_DEVICES; start containers with --gpus all");
    case kStubLibrary:
      return refuse(kErrNoStart, "cuda: no driver", library + " is the toolkit's stub for linking (34)", "install NVIDIA's driver; take the stubs folder out of the library path");
    case kInsufficientDriver: case cuda::kCompatNotSupported: case cuda::kSystemDriverMismatch:
      return refuse(kErrNoStart, "cuda: driver and library do not fit", said, "install one version of NVIDIA's driver and its library, then restart");
    case cuda::kSystemNotReady: return refuse(kErrNoStart, "cuda: the system is not ready", said, "start nvidia-fabricmanager");
    default: return refuse(kErrNoStart, "cuda: the driver does not start", said, "run nvidia-smi and look at the kernel's log");
  }
}

constexpr Flavor kCuda = {"cuda", "CUDA", TN_KIND_CUDA, 0x10DE, Dialect::Cuda, true, kAttributes, architecture, types, rates, version, start_failed, 0};

}  // namespace

const char* driver_name() { return "cuda"; }

tn_status make_driver(const tn_host* host, std::unique_ptr<Driver>* out, tn_diag* diag) {
  Library library;
  if (!library.open({"libcuda.so.1"}, setting(host, "cuda.libcuda")))
    return fail_why(diag, TN_E_UNAVAILABLE, kErrNoLibrary, "cuda: no driver", library.tried(), "install NVIDIA's driver (Debian: nvidia-driver, libcuda1)");
  Api api;
  if (tn_status s = bind(library, kSymbols, std::size(kSymbols), &api, "cuda", diag); s != TN_OK) return s;
  // The compiler comes after the driver's start: without a device nobody needs it.
  std::unique_ptr<Compiler> compiler;
  auto driver = std::make_unique<CuDriver>(kCuda, api);
  if (tn_status s = driver->start(library.path(), diag); s != TN_OK) return s;
  if (tn_status s = cuda::Nvrtc::open(setting(host, "cuda.libnvrtc"), &compiler, diag); s != TN_OK) return s;
  driver->set_compiler(std::move(compiler));
  *out = std::move(driver);
  return TN_OK;
}

}  // namespace tenon::gpu
