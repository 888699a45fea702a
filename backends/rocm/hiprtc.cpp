#include "backends/rocm/hiprtc.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "backends/gpu_common/cu_like/errors.h"
#include "backends/rocm/child.h"
#include "backends/rocm/tenon_hip_abi.h"

namespace tenon::rocm {
using gpu::report;
using gpu::cu_like::fail_why;
using gpu::cu_like::kErrArchitecture;
using gpu::cu_like::kErrCompile;
using gpu::cu_like::kErrCompilerProcess;
using gpu::cu_like::kErrNoCompiler;
using gpu::cu_like::Library;
using gpu::cu_like::setting;
namespace {

constexpr uint32_t kMostTimeoutMs = 3600000;

// The file that holds this code. Asked of the kernel, not of the linker, which repeats the name it was given: the runtime opens
// plugins by a descriptor that it has checked, and that may be another file's by now.
std::string own_file() {
  static const char here = 0;
  const auto address = reinterpret_cast<uintptr_t>(&here);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0;
    int path = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx %*s %*s %*s %*s %n", &begin, &end, &path) != 2 || address < begin || address >= end) continue;
    return path > 0 ? line.substr(static_cast<size_t>(path)) : std::string();
  }
  return {};
}

// The helper lies in the tree where this plugin lies; the build says how to get there.
std::string helper_beside_plugin() {
  const std::string file = own_file();
  return file.substr(0, file.rfind('/') + 1) + TENON_HIPRTC_FROM_PLUGIN;
}

tn_status read_settings(const tn_host* host, HiprtcSettings* out, tn_diag* diag) {
  const char* helper = setting(host, "rocm.hiprtc_helper");
  out->helper = helper != nullptr ? helper : helper_beside_plugin();
  if (access(out->helper.c_str(), X_OK) != 0)
    return fail_why(diag, TN_E_UNAVAILABLE, kErrCompilerProcess, "rocm: the compiler's program is absent", out->helper + " is not there or cannot be run",
                    "install the plugins whole, or set rocm.hiprtc_helper");
  if (const char* text = setting(host, "rocm.compile_timeout_ms")) {
    char* end = nullptr;
    const unsigned long value = std::strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != 0 || value == 0 || value > kMostTimeoutMs)
      return report(diag, TN_E_ARG, kErrCompilerProcess, "rocm: bad value of rocm.compile_timeout_ms\nwhy: \"%s\" is not a whole number in 1..%u\ntry: leave it out for 120000", text, kMostTimeoutMs);
    out->timeout_ms = static_cast<uint32_t>(value);
  }
  return TN_OK;
}

}  // namespace

bool is_target(const std::string& text) {
  if (!text.starts_with("gfx") || text.size() < 6) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == ':' || c == '+' || c == '-'; });
}

tn_status Hiprtc::open(const tn_host* host, const Library& runtime, std::unique_ptr<gpu::cu_like::Compiler>* out, tn_diag* diag) {
  HiprtcSettings settings;
  Library own;
  const char* instead = setting(host, "rocm.libhiprtc");
  const bool separate = own.open({"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5"}, instead);
  const Library& library = separate || instead != nullptr ? own : runtime;
  const bool opened = separate || instead == nullptr;
  const auto version = opened ? reinterpret_cast<int (*)(int*, int*)>(library.symbol("hiprtcVersion")) : nullptr;
  if (version == nullptr)
    return fail_why(diag, TN_E_UNAVAILABLE, kErrNoCompiler, "rocm: no run-time compiler", own.tried().empty() ? library.path() + " has no hiprtcVersion" : own.tried(),
                    "install hiprtc (Debian: libamdhip64-5; ROCm: hip-runtime-amd)");
  if (tn_status s = read_settings(host, &settings, diag); s != TN_OK) return s;
  settings.library = library.path();
  int major = 0, minor = 0;
  version(&major, &minor);
  *out = std::make_unique<Hiprtc>(std::move(settings), "hiprtc " + std::to_string(major) + "." + std::to_string(minor));
  return TN_OK;
}

tn_status Hiprtc::target(const std::string& architecture, std::string* out, tn_diag* diag) const {
  *out = architecture;
  if (is_target(architecture)) return TN_OK;
  return report(diag, TN_E_UNAVAILABLE, kErrArchitecture, "rocm: the device's architecture is not known\nwhy: the driver calls it \"%s\", which is no gfx name\ntry: update ROCm", architecture.c_str());
}

// No contraction but what is written; subnormal numbers kept, which is the default. No headers are looked for.
std::vector<std::string> Hiprtc::options() const { return {"-O3", "-std=c++17", "-ffp-contract=off"}; }

tn_status Hiprtc::compile(const std::string& name, const std::string& text, const std::string& target, std::string* binary, tn_diag* diag) const {
  std::vector<std::string> arguments{settings_.helper, settings_.library, name + ".hip"};
  for (const std::string& option : options()) arguments.push_back(option);
  arguments.push_back("--offload-arch=" + target);
  ChildEnd end = run_child(arguments, text, settings_.timeout_ms);
  if (end.how == ChildEnd::Exited && end.number == kHelperDone && !end.output.empty()) {
    *binary = std::move(end.output);
    return TN_OK;
  }
  const std::string of = name + " for " + target;
  if (end.how == ChildEnd::Exited && end.number == kHelperCompileFailed)
    return fail_why(diag, TN_E_FAILED, kErrCompile, "rocm: kernel " + of + " does not compile", end.errors, "report this text with the compiler's version");
  return fail_why(diag, TN_E_FAILED, kErrCompilerProcess, "rocm: the compiler failed with kernel " + of, end_text(end, settings_.timeout_ms) + "; " + end.errors,
                  "install this architecture's device libraries, or a newer ROCm");
}

}  // namespace tenon::rocm
