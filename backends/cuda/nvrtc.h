// backends/cuda/nvrtc.h - CUDA's run-time compiler, opened when the plugin opens. It needs no driver.
#pragma once
#include <tenon/plugin.h>

#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/tenon_cuda_abi.h"
#include "backends/gpu_common/cu_like/flavor.h"
#include "backends/gpu_common/cu_like/library.h"

namespace tenon::cuda {

class Nvrtc final : public gpu::cu_like::Compiler {
 public:
  // `instead`: a path from the configuration, or NULL. errors: TN_E_UNAVAILABLE with what to install.
  static tn_status open(const char* instead, std::unique_ptr<gpu::cu_like::Compiler>* out, tn_diag*);
  std::string version() const override;
  tn_status target(const std::string& architecture, std::string* out, tn_diag*) const override;
  std::vector<std::string> options() const override;
  tn_status compile(const std::string& name, const std::string& text, const std::string& target, std::string* binary, tn_diag*) const override;

 private:
  std::string log(NvrtcProgram) const;
  gpu::cu_like::Library library_;
#define TENON_NVRTC_MEMBER(member, symbol, parameters) int(*member##_) parameters = nullptr;
  TENON_NVRTC_CALLS(TENON_NVRTC_MEMBER)
#undef TENON_NVRTC_MEMBER
  std::vector<int> known_;  // architectures, ascending: 75, 80, ...
};

// The nearest target of `known` (ascending) for compute capability `wanted` (90 for 9.0): the machine code of the same major
// version, itself or the next lower ("sm_86"); else the intermediate code of the highest below ("compute_80"), which the
// driver translates. Empty when all known ones are newer.
std::string nearest_target(const std::vector<int>& known, int wanted);

}  // namespace tenon::cuda
