#include "backends/cuda/nvrtc.h"

#include <algorithm>
#include <cstdlib>

#include "backends/gpu_common/cu_like/errors.h"

namespace tenon::cuda {
using gpu::report;
using gpu::cu_like::fail_why;
using gpu::cu_like::kErrArchitecture;
using gpu::cu_like::kErrCompile;
using gpu::cu_like::kErrNoCompiler;

std::string nearest_target(const std::vector<int>& known, int wanted) {
  int best = 0;
  for (int arch : known)
    if (arch <= wanted) best = std::max(best, arch);
  if (best == 0) return {};
  // Machine code runs on every later minor version of its major version, never on another.
  return (best / 10 == wanted / 10 ? "sm_" : "compute_") + std::to_string(best);
}

tn_status Nvrtc::open(const char* instead, std::unique_ptr<gpu::cu_like::Compiler>* out, tn_diag* diag) {
  auto made = std::make_unique<Nvrtc>();
  const std::vector<std::string> names{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "/usr/local/cuda/lib64/libnvrtc.so", "/usr/local/cuda/lib/libnvrtc.so", "libnvrtc.so"};
  if (!made->library_.open(names, instead))
    return fail_why(diag, TN_E_UNAVAILABLE, kErrNoCompiler, "cuda: no run-time compiler", made->library_.tried(),
                    "install libnvrtc (package cuda-nvrtc of CUDA 11.2 or later, or pip's nvidia-cuda-nvrtc)");
#define TENON_NVRTC_BIND(member, name, parameters) \
  made->member##_ = reinterpret_cast<int(*) parameters>(made->library_.symbol(#name)); \
  if (made->member##_ == nullptr) \
    return report(diag, TN_E_UNAVAILABLE, kErrNoCompiler, "cuda: the run-time compiler is too old\nwhy: %s has no %s\ntry: install libnvrtc of CUDA 11.2 or later", \
                made->library_.path().c_str(), #name);
  TENON_NVRTC_CALLS(TENON_NVRTC_BIND)
#undef TENON_NVRTC_BIND
  int n = 0;
  if (made->arch_count_(&n) == 0 && n > 0) {
    made->known_.resize(static_cast<size_t>(n));
    if (made->archs_(made->known_.data()) != 0) made->known_.clear();
    std::sort(made->known_.begin(), made->known_.end());
  }
  *out = std::move(made);
  return TN_OK;
}

std::string Nvrtc::version() const {
  int major = 0, minor = 0;
  version_(&major, &minor);
  return "NVRTC " + std::to_string(major) + "." + std::to_string(minor);
}

tn_status Nvrtc::target(const std::string& architecture, std::string* out, tn_diag* diag) const {
  const int wanted = architecture.starts_with("sm_") ? std::atoi(architecture.c_str() + 3) : 0;
  *out = nearest_target(known_, wanted);
  if (!out->empty()) return TN_OK;
  return report(diag, TN_E_UNAVAILABLE, kErrArchitecture, "cuda: %s cannot compile for this device\nwhy: the device is %s, the oldest known is sm_%d\ntry: install libnvrtc of an earlier CUDA", version().c_str(),
              architecture.c_str(), known_.empty() ? 0 : known_.front());
}

// No fused multiply-adds but those that are written, subnormal numbers kept, division and square root correctly rounded.
std::vector<std::string> Nvrtc::options() const { return {"--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--std=c++17"}; }

std::string Nvrtc::log(NvrtcProgram program) const {
  size_t size = 0;
  if (log_size_(program, &size) != 0 || size < 2) return "the compiler says nothing";
  std::string text(size, 0);
  if (log_(program, text.data()) != 0) return "the compiler's log cannot be read";
  text.resize(size - 1);
  return text;
}

tn_status Nvrtc::compile(const std::string& name, const std::string& text, const std::string& target, std::string* binary, tn_diag* diag) const {
  NvrtcProgram program = nullptr;
  if (const int code = create_(&program, text.c_str(), (name + ".cu").c_str(), 0, nullptr, nullptr); code != 0)
    return report(diag, code == 1 ? TN_E_OOM : TN_E_FAILED, kErrCompile, "cuda: kernel %s was not compiled\nwhy: nvrtcCreateProgram says %d\ntry: free memory", name.c_str(), code);
  const auto destroy = [&](NvrtcProgram* p) { destroy_(p); };
  const std::unique_ptr<NvrtcProgram, decltype(destroy)> guard(&program, destroy);
  std::vector<std::string> all = options();
  all.push_back("--gpu-architecture=" + target);
  std::vector<const char*> argv;
  for (const std::string& option : all) argv.push_back(option.c_str());
  if (const int code = compile_(program, static_cast<int>(argv.size()), argv.data()); code != 0)
    return fail_why(diag, TN_E_FAILED, kErrCompile, "cuda: kernel " + name + " does not compile for " + target, std::to_string(code) + ": " + log(program),
                    "report this text with the compiler's version");
  const bool machine_code = target.starts_with("sm_");
  size_t size = 0;
  int code = machine_code ? cubin_size_(program, &size) : ptx_size_(program, &size);
  binary->assign(size, 0);
  if (code == 0) code = machine_code ? cubin_(program, binary->data()) : ptx_(program, binary->data());
  if (code == 0 && size != 0) return TN_OK;
  return report(diag, TN_E_FAILED, kErrCompile, "cuda: kernel %s gave no code\nwhy: NVRTC says %d, %zu bytes\ntry: install another version of libnvrtc", name.c_str(), code, size);
}

}  // namespace tenon::cuda
