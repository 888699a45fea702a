// backends/rocm/hiprtc.h - HIP's run-time compiler in a process of its own: it is known to abort the program that asks it for an
// architecture without device libraries.
#pragma once
#include <tenon/plugin.h>

#include <memory>
#include <string>
#include <vector>

#include "backends/gpu_common/cu_like/flavor.h"
#include "backends/gpu_common/cu_like/library.h"

namespace tenon::rocm {

struct HiprtcSettings {
  std::string helper;           // path of tenon-hiprtc
  std::string library;          // the library that `helper` opens
  uint32_t timeout_ms = 120000;  // of one kernel
};

class Hiprtc final : public gpu::cu_like::Compiler {
 public:
  // Looks for hiprtc in libhiprtc, then in the runtime's own library, where older releases have it. Configuration: rocm.libhiprtc,
  // rocm.hiprtc_helper, rocm.compile_timeout_ms. errors: TN_E_UNAVAILABLE with what to install.
  static tn_status open(const tn_host*, const gpu::cu_like::Library& runtime, std::unique_ptr<gpu::cu_like::Compiler>* out, tn_diag*);
  explicit Hiprtc(HiprtcSettings settings, std::string version) : settings_(std::move(settings)), version_(std::move(version)) {}
  std::string version() const override { return version_; }
  tn_status target(const std::string& architecture, std::string* out, tn_diag*) const override;
  std::vector<std::string> options() const override;
  tn_status compile(const std::string& name, const std::string& text, const std::string& target, std::string* binary, tn_diag*) const override;

 private:
  const HiprtcSettings settings_;
  const std::string version_;
};

// "gfx90a:sramecc+:xnack-" and the like: what may be handed to the compiler as a target.
bool is_target(const std::string& text);

// Exit statuses of tenon-hiprtc LIBRARY NAME OPTION...: text on standard input, code on standard output, the compiler's log on
// standard error.
enum HelperExit : int { kHelperDone = 0, kHelperCompileFailed = 10, kHelperNoLibrary = 11, kHelperNoCode = 12 };

}  // namespace tenon::rocm
