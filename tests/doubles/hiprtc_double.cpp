// A stand-in for hiprtc: takes clang's options for HIP and no others, and hands out code for the HIP double.
#include <cctype>

#include "tests/doubles/compiler.h"
#include "tests/doubles/export.h"

using namespace tenon_double;
namespace {

enum : int { kGood = 0, kInvalidInput = 3, kInvalidProgram = 4, kInvalidOption = 5, kCompilation = 6 };

int read_options(int n, const char* const* options, CompilerProgram* p, std::string* flags) {
  *flags = "-ffp-contract=fast";
  for (int i = 0; i < n; ++i) {
    const std::string o = options[i];
    if (o.rfind("--offload-arch=", 0) == 0)
      p->target = o.substr(std::strlen("--offload-arch="));
    else if (o == "-ffp-contract=off")
      *flags = o;
    else if (o != "-O3" && o.rfind("-std=c++", 0) != 0)
      return p->log = "error: unknown argument: '" + o + "'\n", kInvalidOption;
  }
  if (p->target.rfind("gfx", 0) != 0) return p->log = "error: invalid target ID '" + p->target + "'\n", kCompilation;
  return kGood;
}

CompilerProgram* of(void* program) { return static_cast<CompilerProgram*>(program); }

}  // namespace

TENON_DOUBLE_API int hiprtcVersion(int* major, int* minor) { return *major = 6, *minor = 2, 0; }
TENON_DOUBLE_API int hiprtcCreateProgram(void** out, const char* text, const char* name, int headers, const char* const*, const char* const*) {
  if (text == nullptr || headers != 0) return kInvalidInput;
  *out = new CompilerProgram{text, name != nullptr ? name : "", "", "", ""};
  return kGood;
}
TENON_DOUBLE_API int hiprtcDestroyProgram(void** program) {
  if (program == nullptr || *program == nullptr) return kInvalidProgram;
  delete of(*program);
  *program = nullptr;
  return kGood;
}
TENON_DOUBLE_API int hiprtcCompileProgram(void* program, int n, const char* const* options) {
  CompilerProgram* p = of(program);
  std::string flags;
  compiler_fault();
  if (const int code = read_options(n, options, p, &flags)) return code;
  return compile(p->text, p->target, flags + " -DTENON_HIP", &p->code, &p->log) ? kGood : kCompilation;
}
TENON_DOUBLE_API int hiprtcGetProgramLogSize(void* program, size_t* out) { return *out = of(program)->log.size() + 1, kGood; }
TENON_DOUBLE_API int hiprtcGetProgramLog(void* program, char* out) { return std::memcpy(out, of(program)->log.c_str(), of(program)->log.size() + 1), kGood; }
TENON_DOUBLE_API int hiprtcGetCodeSize(void* program, size_t* out) { return *out = of(program)->code.size(), kGood; }
TENON_DOUBLE_API int hiprtcGetCode(void* program, char* out) { return std::memcpy(out, of(program)->code.data(), of(program)->code.size()), kGood; }
