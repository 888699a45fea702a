// A stand-in for libnvrtc: takes NVRTC's options and no others, and hands out code for the CUDA double. With
// TENON_DOUBLE_REAL_NVRTC set to a library's path each text is first compiled by that one.
#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "tests/doubles/compiler.h"
#include "tests/doubles/export.h"

using namespace tenon_double;
namespace {

constexpr int kArchs[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
enum : int { kGood = 0, kInvalidInput = 3, kInvalidProgram = 4, kInvalidOption = 5, kCompilation = 6 };

bool known_target(const std::string& target) {
  for (int arch : kArchs)
    if (target == "sm_" + std::to_string(arch) || target == "compute_" + std::to_string(arch)) return true;
  return target == "sm_90a" || target == "sm_100a";
}

// Fused multiply-adds are made unless the caller forbids them, as the real one does.
int read_options(int n, const char* const* options, CompilerProgram* p, std::string* flags) {
  *flags = "-ffp-contract=fast";
  p->target = "sm_75";
  for (int i = 0; i < n; ++i) {
    const std::string o = options[i];
    const auto value = [&](const char* key) { return o.rfind(key, 0) == 0 ? o.substr(std::strlen(key)) : std::string(); };
    if (const std::string t = value("--gpu-architecture="); !t.empty()) {
      if (!known_target(t)) return p->log = "nvrtc: error: invalid value for --gpu-architecture (-arch)\n", kInvalidOption;
      p->target = t;
    } else if (o == "--fmad=false") {
      *flags = "-ffp-contract=off";
    } else if (o != "--fmad=true" && o != "--ftz=false" && o != "--prec-div=true" && o != "--prec-sqrt=true" && o.rfind("--std=c++", 0) != 0) {
      return p->log = "nvrtc: error: unrecognized option " + o + " found\n", kInvalidOption;
    }
  }
  return kGood;
}

using Create = int (*)(void**, const char*, const char*, int, const char* const*, const char* const*);
using Compile = int (*)(void*, int, const char* const*);
using Size = int (*)(void*, size_t*);
using Text = int (*)(void*, char*);
using Destroy = int (*)(void**);

int real_check(CompilerProgram* p, int n, const char* const* options) {
  static const char* const path = std::getenv("TENON_DOUBLE_REAL_NVRTC");
  if (path == nullptr || *path == 0) return kGood;
  static void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return p->log = dlerror(), kCompilation;
  void* program = nullptr;
  reinterpret_cast<Create>(dlsym(library, "nvrtcCreateProgram"))(&program, p->text.c_str(), p->name.c_str(), 0, nullptr, nullptr);
  const int code = reinterpret_cast<Compile>(dlsym(library, "nvrtcCompileProgram"))(program, n, options);
  size_t size = 0;
  if (code != kGood && reinterpret_cast<Size>(dlsym(library, "nvrtcGetProgramLogSize"))(program, &size) == 0) {
    p->log.assign(size, 0);
    reinterpret_cast<Text>(dlsym(library, "nvrtcGetProgramLog"))(program, p->log.data());
  }
  reinterpret_cast<Destroy>(dlsym(library, "nvrtcDestroyProgram"))(&program);
  return code;
}

CompilerProgram* of(void* program) { return static_cast<CompilerProgram*>(program); }

}  // namespace

TENON_DOUBLE_API int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, 0; }
TENON_DOUBLE_API int nvrtcGetNumSupportedArchs(int* out) { return *out = std::size(kArchs), 0; }
TENON_DOUBLE_API int nvrtcGetSupportedArchs(int* out) { return std::memcpy(out, kArchs, sizeof kArchs), 0; }
TENON_DOUBLE_API int nvrtcCreateProgram(void** out, const char* text, const char* name, int headers, const char* const*, const char* const*) {
  if (text == nullptr || headers != 0) return kInvalidInput;
  *out = new CompilerProgram{text, name != nullptr ? name : "", "", "", ""};
  return kGood;
}
TENON_DOUBLE_API int nvrtcDestroyProgram(void** program) {
  if (program == nullptr || *program == nullptr) return kInvalidProgram;
  delete of(*program);
  *program = nullptr;
  return kGood;
}
TENON_DOUBLE_API int nvrtcCompileProgram(void* program, int n, const char* const* options) {
  CompilerProgram* p = of(program);
  std::string flags;
  compiler_fault();
  if (const int code = read_options(n, options, p, &flags)) return code;
  if (const int code = real_check(p, n, options)) return code;
  return compile(p->text, p->target, flags, &p->code, &p->log) ? kGood : kCompilation;
}
TENON_DOUBLE_API int nvrtcGetProgramLogSize(void* program, size_t* out) { return *out = of(program)->log.size() + 1, kGood; }
TENON_DOUBLE_API int nvrtcGetProgramLog(void* program, char* out) { return std::memcpy(out, of(program)->log.c_str(), of(program)->log.size() + 1), kGood; }
TENON_DOUBLE_API int nvrtcGetCUBINSize(void* program, size_t* out) {
  return *out = of(program)->target.rfind("compute_", 0) == 0 ? 0 : of(program)->code.size(), kGood;
}
TENON_DOUBLE_API int nvrtcGetCUBIN(void* program, char* out) { return std::memcpy(out, of(program)->code.data(), of(program)->code.size()), kGood; }
TENON_DOUBLE_API int nvrtcGetPTXSize(void* program, size_t* out) { return *out = of(program)->code.size(), kGood; }
TENON_DOUBLE_API int nvrtcGetPTX(void* program, char* out) { return std::memcpy(out, of(program)->code.data(), of(program)->code.size()), kGood; }
