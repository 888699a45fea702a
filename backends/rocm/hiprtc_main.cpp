// tenon-hiprtc LIBRARY NAME OPTION... - compiles the HIP text on standard input with LIBRARY's hiprtc; the code goes to standard
// output, the log to standard error. Exit statuses: HelperExit. Started by the rocm plugin, once for each kernel.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "backends/rocm/hiprtc.h"
#include "backends/rocm/tenon_hip_abi.h"

namespace {
using tenon::rocm::RtcProgram;

struct Calls {
#define MEMBER(member, symbol, parameters) int(*member) parameters = nullptr;
  TENON_HIPRTC_CALLS(MEMBER)
#undef MEMBER
};

[[noreturn]] void give_up(int status, const char* what) {
  std::fprintf(stderr, "%s\n", what != nullptr ? what : "no reason was given");
  // Not exit: the compiler's handlers for the program's end are the part that crashes.
  std::fflush(nullptr);
  _exit(status);
}

Calls open(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) give_up(tenon::rocm::kHelperNoLibrary, dlerror());
  Calls calls;
#define BIND(member, symbol, parameters) \
  calls.member = reinterpret_cast<int(*) parameters>(dlsym(library, #symbol)); \
  if (calls.member == nullptr) give_up(tenon::rocm::kHelperNoLibrary, "the library lacks " #symbol);
  TENON_HIPRTC_CALLS(BIND)
#undef BIND
  return calls;
}

std::string read_all() {
  std::string text;
  char buffer[16384];
  for (ssize_t n; (n = read(0, buffer, sizeof buffer)) != 0;) {
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  return text;
}

bool write_all(int fd, const std::string& data) {
  for (size_t done = 0; done < data.size();) {
    const ssize_t n = write(fd, data.data() + done, data.size() - done);
    if (n > 0) done += static_cast<size_t>(n);
    if (n <= 0 && errno != EINTR) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) give_up(tenon::rocm::kHelperNoLibrary, "usage: tenon-hiprtc LIBRARY NAME OPTION...");
  // What the compiler itself prints must not end up in the code.
  const int output = dup(1);
  dup2(2, 1);
  const Calls rtc = open(argv[1]);
  const std::string text = read_all();
  RtcProgram program = nullptr;
  if (rtc.create(&program, text.c_str(), argv[2], 0, nullptr, nullptr) != 0) give_up(tenon::rocm::kHelperNoCode, "hiprtcCreateProgram failed");
  const std::vector<const char*> options(argv + 3, argv + argc);
  const int compiled = rtc.compile(program, static_cast<int>(options.size()), options.data());
  size_t size = 0;
  if (compiled != 0) {
    std::string log(rtc.log_size(program, &size) == 0 ? size : 0, 0);
    if (log.empty() || rtc.log(program, log.data()) != 0) log = "hiprtcCompileProgram says " + std::to_string(compiled);
    give_up(tenon::rocm::kHelperCompileFailed, log.c_str());
  }
  if (rtc.code_size(program, &size) != 0 || size == 0) give_up(tenon::rocm::kHelperNoCode, "hiprtcGetCodeSize failed");
  std::string code(size, 0);
  if (rtc.code(program, code.data()) != 0) give_up(tenon::rocm::kHelperNoCode, "hiprtcGetCode failed");
  _exit(write_all(output, code) ? tenon::rocm::kHelperDone : tenon::rocm::kHelperNoCode);
}
